"""CEL: our own parser, checker and evaluator.

The grammar, the macros and the meaning are those of CEL. Google's implementation (cel-expr-python, 50 MB) is the oracle
of the tests: both must parse a text to the same tree and give the same answers. It is not used at run time: its
evaluator copies every bound value first, takes seconds to `map` some thousand elements and cannot be stopped.

For JSON, some rules go further than CEL: integers and doubles mix in arithmetic, integers of any size
compare, null has no fields for `has` and `.?`, and infinities are errors.
"""
