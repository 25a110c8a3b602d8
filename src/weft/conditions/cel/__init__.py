"""CEL: parsed, checked and evaluated here, without a library.

The grammar, the macros and the meaning are those of CEL. Google's implementation (cel-expr-python, 50 MB) is the oracle
of the tests: both must read the same tree from a text and give the same answers. It is not used at run time: its
evaluator copies every bound value first, takes seconds to `map` some thousand elements and cannot be stopped.

Where JSON calls for it we go further than CEL: integers and doubles mix in arithmetic, integers of any size
compare, null has no fields for `has` and `.?`, and infinities are errors.
"""
