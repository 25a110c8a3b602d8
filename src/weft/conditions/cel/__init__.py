"""A parser, checker and evaluator for CEL.

The grammar, the macros and the semantics are those of CEL. The tests compare this implementation with Google's
(cel-expr-python, 50 MB): both must parse a text to the same tree and return the same results. Google's is not used at
run time: its evaluator copies every bound value, takes seconds to ``map`` a few thousand elements, and cannot be
stopped.

For JSON, some rules are wider than in CEL: integers and doubles mix in arithmetic, integers of any size
compare, null has no fields for ``has`` and ``.?``, and infinities are errors.
"""
