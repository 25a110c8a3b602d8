"""CEL: parsed by Google's parser, checked and evaluated here.

The parser is cel-expr-python's, so the grammar, the macros and the positions of errors are those of CEL. Evaluation is
ours: on JSON as it is, without copying it, within a budget of steps, with errors that name the path. (The library's own
evaluator copies every bound value first, takes seconds to `map` some thousand elements, cannot be stopped, and on
Python 3.11 loses references to None. A test holds both evaluators to the same answers.)

Where JSON calls for it we go further than CEL: integers and doubles mix in arithmetic, integers of any size
compare, null has no fields for `has` and `.?`, and infinities are errors.
"""
