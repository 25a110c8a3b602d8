"""Expressions, templates and conditions: one evaluator for graphs and goals, compiled once and cached.

    compile_expression("output.score >= 80")        .names .paths .evaluate(bindings) -> JSON
    compile_template({"to": "${input.email}"})      the same, for JSON with ``${CEL}`` in its strings
    compile_condition({"schema": {…}})              .evaluate(bindings) -> ConditionResult(value, seen)

All are immutable and thread-safe. Evaluation is pure and bounded: no input, however hostile, hangs or crashes it. Only
conditions in Python (``needs_sandbox``) leave the process. They are rejected unless ``enable_python_sandbox()`` was
called.
"""

from weft.conditions.compiler import compile_condition
from weft.conditions.conditions import Condition, ConditionResult
from weft.conditions.expressions import Expression, compile_expression
from weft.conditions.failures import BadExpression, EvaluationFailed, ExpressionError
from weft.conditions.jpaths import Jpath, compile_jpath
from weft.conditions.paths import nodes_read
from weft.conditions.sandbox import enable_python_sandbox
from weft.conditions.templates import Template, compile_template

__all__ = [
    "BadExpression",
    "Condition",
    "ConditionResult",
    "EvaluationFailed",
    "Expression",
    "ExpressionError",
    "Jpath",
    "Template",
    "compile_condition",
    "compile_expression",
    "compile_jpath",
    "compile_template",
    "enable_python_sandbox",
    "nodes_read",
]
