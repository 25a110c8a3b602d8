"""Compile conditions of every kind, in every spelling, and report all errors at once.

"output.score >= 80"                            {type: cel, expression}
{schema: …}  {not_schema: …}                    {type: schema_validation, schema or schema_ref, invert}
{jsonpath: $.a, is: ">", value: 3, agg: sum}    {type: jsonpath, query, operator, value, agg}
{all: […]}  {any: […]}  {not: …}                {type: composite, operator: AND, OR, NOT; conditions}
{python: "def evaluate(output, context): …"}    {type: python_sandbox, code or code_ref, timeout_ms, max_memory_mb}
                                                {type: cross_node_comparison, left, operator, right or expression}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from weft.conditions import conditions, sandbox
from weft.conditions.conditions import Comparison, Condition, Side
from weft.conditions.expressions import CACHED_MAX, compile_comparison, compile_expression
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors, shorten
from weft.conditions.jsonpaths import compile_jsonpath, split_simple_jsonpath
from weft.conditions.literals import check_literal, read_aggregate, read_operator
from weft.conditions.operators import UNARY
from weft.conditions.schemas import compile_schema
from weft.core.findings import did_you_mean

T = TypeVar("T")
Resolve = Callable[[str], Any]  # takes a blob reference; returns the content as bytes, text or decoded JSON
PARTS_MAX: Final = 1_000
DEPTH_MAX: Final = 20
REFERENCE: Final = "cas://"
_encode = msgspec.json.Encoder(order="deterministic").encode


def compile_condition(spec: Any, *, resolve: Resolve | None = None, python: bool | None = None) -> Condition:
    """Compile a condition from text or a document. Equal conditions are compiled once.

    ``resolve`` returns the content of a blob reference (``cas://…``). ``python`` allows or forbids Python conditions;
    if it is None, they are allowed after ``enable_python_sandbox()``.

    Raises:
        BadExpression: lists every error in the condition, each with its path in ``spec``.
    """
    if isinstance(spec, str):
        return _from_text(spec)
    allowed = sandbox.is_enabled() if python is None else python
    try:
        raw = _encode(spec)
    except (TypeError, ValueError, RecursionError):
        raise _bad("kind", "a condition must be text or JSON.") from None
    # Not cached: the content of a blob is not part of the cache key.
    if resolve is not None and REFERENCE.encode() in raw:
        return _ConditionCompiler(resolve, python=allowed).compile(spec, 0)
    return _from_json(raw, python=allowed)


@lru_cache(maxsize=CACHED_MAX)
def _from_text(text: str) -> Condition:
    return conditions.from_expression(compile_expression(text))


@lru_cache(maxsize=CACHED_MAX)
def _from_json(raw: bytes, *, python: bool) -> Condition:
    return _ConditionCompiler(None, python=python).compile(msgspec.json.decode(raw), 0)


class _ConditionCompiler:
    """Compiles one condition and its parts."""

    def __init__(self, resolve: Resolve | None, *, python: bool) -> None:
        self.resolve = resolve
        self.python = python
        self.parts = 0

    def compile(self, spec: Any, depth: int) -> Condition:
        self.parts += 1
        if depth > DEPTH_MAX or self.parts > PARTS_MAX:
            message = f"a condition may have {PARTS_MAX:,} parts and {DEPTH_MAX} levels at most."
            raise combine_errors([ExpressionError("expression.too_deep", message)])
        if isinstance(spec, bool):
            return conditions.constant_condition(spec)
        if isinstance(spec, str):
            return _from_text(spec)
        if not isinstance(spec, Mapping):
            raise _bad("kind", f"a condition must be text or an object, not {_type_name(spec)}.")
        kinds: dict[str, Callable[[Mapping[str, Any], int], Condition]]
        if "type" in spec:
            kinds, given = self._typed(), [spec["type"]]
            if not isinstance(spec["type"], str) or spec["type"] not in kinds:
                hint = (
                    did_you_mean(str(spec["type"])[:40], list(kinds), quote="`") or f"The kinds are {', '.join(kinds)}."
                )
                raise _bad(
                    "kind", f"there is no kind of condition called `{shorten(str(spec['type']), 40)}`.", hint, "type"
                )
        else:
            kinds = self._short()
            given = [name for name in kinds if name in spec]
            if len(given) != 1:
                raise _no_kind(given, spec, list(kinds))
        return kinds[given[0]](spec, depth)

    def _short(self) -> dict[str, Callable[[Mapping[str, Any], int], Condition]]:
        return {
            "schema": lambda spec, _depth: self._schema(spec, "schema", valid=True),
            "not_schema": lambda spec, _depth: self._schema(spec, "not_schema", valid=False),
            "jsonpath": lambda spec, _depth: _jsonpath(
                _fields(spec, "jsonpath", "is", "value", "agg"), "jsonpath", "is"
            ),
            "all": lambda spec, depth: conditions.all_of(self._parts(_fields(spec, "all"), "all", depth)),
            "any": lambda spec, depth: conditions.any_of(self._parts(_fields(spec, "any"), "any", depth)),
            "not": lambda spec, depth: conditions.negate(
                _prefix_errors("not", lambda: self.compile(_fields(spec, "not")["not"], depth + 1))
            ),
            "python": lambda spec, _depth: self._code(_fields(spec, "python"), "python"),
        }

    def _typed(self) -> dict[str, Callable[[Mapping[str, Any], int], Condition]]:
        """Return the compilers of conditions in the older spelling, by ``type``."""
        return {
            "cel": lambda spec, _depth: _cel(_fields(spec, "type", "expression")),
            "schema_validation": lambda spec, _depth: self._schema_validation(spec),
            "jsonpath": lambda spec, _depth: _jsonpath(
                _fields(spec, "type", "query", "operator", "value", "agg"), "query", "operator"
            ),
            "cross_node_comparison": lambda spec, _depth: _cross_node(
                _fields(spec, "type", "left", "operator", "right", "expression")
            ),
            "composite": self._composite,
            "python_sandbox": lambda spec, _depth: self._python_sandbox(spec),
        }

    def _composite(self, spec: Mapping[str, Any], depth: int) -> Condition:
        fields = _fields(spec, "type", "operator", "conditions")
        parts, word = _all_errors(
            lambda: self._parts(fields, "conditions", depth),
            lambda: _one_of(fields, "operator", "AND", "OR", "NOT"),
        )
        if word != "NOT":
            return conditions.all_of(parts) if word == "AND" else conditions.any_of(parts)
        if len(parts) != 1:
            raise _bad("value", "`NOT` takes exactly one condition.", path="conditions")
        return conditions.negate(parts[0])

    def _parts(self, fields: Mapping[str, Any], name: str, depth: int) -> list[Condition]:
        given = fields.get(name)
        if not isinstance(given, list) or not given:
            raise _bad("value", f"`{name}` must be a list of at least one condition.", path=name)

        def part(at: int) -> Callable[[], Condition]:
            return lambda: _prefix_errors(f"{name}[{at}]", lambda: self.compile(given[at], depth + 1))

        # Compile one part more than allowed, so that ``compile`` raises the error.
        return _all_errors(*(part(at) for at in range(min(len(given), PARTS_MAX + 1))))

    def _schema_validation(self, spec: Mapping[str, Any]) -> Condition:
        fields = _fields(spec, "type", "schema", "schema_ref", "invert")
        invert = fields.get("invert", False)
        if not isinstance(invert, bool):
            raise _bad("value", "`invert` must be true or false.", path="invert")
        name = _either(fields, "schema", "schema_ref")
        return self._schema({name: fields[name]}, name, valid=not invert)

    def _schema(self, spec: Mapping[str, Any], name: str, *, valid: bool) -> Condition:
        given = _fields(spec, name)[name]
        if isinstance(given, str):
            reference = given
            given = _prefix_errors(name, lambda: _decoded(self._content(reference)))
        return conditions.from_schema(_prefix_errors(name, lambda: compile_schema(given)), valid=valid)

    def _python_sandbox(self, spec: Mapping[str, Any]) -> Condition:
        fields = _fields(spec, "type", "code", "code_ref", "timeout_ms", "max_memory_mb")
        return self._code(fields, _either(fields, "code", "code_ref"))

    def _code(self, fields: Mapping[str, Any], name: str) -> Condition:
        if not self.python:
            hint = "Call `enable_python_sandbox()` where the engine is hosted to enable them."
            raise _bad("python_off", "conditions in Python are not enabled.", hint, name)
        text = _text_field(fields, name)
        if text.startswith(REFERENCE):
            content = _prefix_errors(name, lambda: self._content(_text_field(fields, name)))
            text = content.decode(errors="replace") if isinstance(content, bytes) else str(content)
        code, limits = _all_errors(
            lambda: _prefix_errors(name, lambda: sandbox.check_python_source(text)),
            lambda: sandbox.SandboxLimits(
                _integer(fields, "timeout_ms", sandbox.TIME_MS_MAX),
                _integer(fields, "max_memory_mb", sandbox.MEMORY_MB_MAX),
            ),
        )
        return conditions.from_code(code, limits)

    def _content(self, reference: str) -> Any:
        """Return the content of the blob that a reference names."""
        if not reference.startswith(REFERENCE):
            raise _bad("reference", f"a reference must look like `{REFERENCE}sha256:…`.")
        if self.resolve is None:
            raise _bad("reference", f"`{shorten(reference)}` cannot be loaded here.")
        try:
            content = self.resolve(reference)
        except Exception as error:  # noqa: BLE001  # whatever the store raises, the document is invalid
            raise _bad(
                "reference", f"`{shorten(reference)}` cannot be loaded: {shorten(str(error)).rstrip('.')}."
            ) from None
        if content is None:
            raise _bad("reference", f"`{shorten(reference)}` does not exist.")
        return content


def _cel(fields: Mapping[str, Any]) -> Condition:
    text = _text_field(fields, "expression")
    return _prefix_errors("expression", lambda: _from_text(text))


def _jsonpath(fields: Mapping[str, Any], path_name: str, operator_name: str) -> Condition:
    word = fields.get(operator_name)
    query, (aggregate, operator) = _all_errors(
        lambda: _prefix_errors(path_name, lambda: compile_jsonpath(_text_field(fields, path_name))),
        lambda: _prefix_errors(operator_name, lambda: read_operator("exists" if word is None else word)),
    )
    if "agg" in fields:
        aggregate = _prefix_errors("agg", lambda: read_aggregate(fields["agg"], aggregate))
    if "value" not in fields and operator not in UNARY:
        raise _bad("field", f"`{word}` needs a `value`.")
    comparison = Comparison(aggregate, operator, fields.get("value", True))
    _prefix_errors("value", lambda: check_literal(comparison))
    return conditions.from_query(query, comparison)


def _cross_node(fields: Mapping[str, Any]) -> Condition:
    if "expression" in fields:
        if len(fields) > 2:
            raise _bad("field", "`expression` cannot be combined with other fields.")
        text = _text_field(fields, "expression")
        return conditions.from_comparison_text(_prefix_errors("expression", lambda: compile_comparison(text)))
    missing = {"value": True} if fields.get("operator") in UNARY else None
    left, (aggregate, operator), right = _all_errors(
        lambda: _prefix_errors("left", lambda: _side(fields.get("left"))),
        lambda: _prefix_errors("operator", lambda: read_operator(fields.get("operator"))),
        lambda: _prefix_errors("right", lambda: _side(fields.get("right", missing))),
    )
    if aggregate:
        raise _bad("operator", f"only a condition of the kind jsonpath can use `{aggregate}`.", path="operator")
    if not right.path:
        _prefix_errors("right", lambda: check_literal(Comparison("", operator, right.value)))
    return conditions.from_sides(left, operator, right)


def _side(side: Any) -> Side:
    if isinstance(side, Mapping) and "value" in side:
        return Side((), _fields(side, "value")["value"])
    if isinstance(side, Mapping):
        fields = _fields(side, "source", "node", "path")
        pieces = split_simple_jsonpath(f"$.{fields.get('path')}")
        match fields.get("source"):
            case "current" if pieces and pieces[0] == "output" and "node" not in fields:
                return Side(pieces)
            case "context" if pieces and isinstance(fields.get("node"), str):
                return Side(("nodes", fields["node"], *pieces))
    raise _bad(
        "field",
        "a side must be `{source: current, path: output.x}`, `{source: context, node: n, path: output.x}` "
        "or `{value: …}`.",
    )


# Fields


def _fields(spec: Mapping[str, Any], *known: str) -> dict[str, Any]:
    errors = [
        ExpressionError("condition.field", f"there is no field `{shorten(str(name), 40)}` here.", hint=hint)
        for name in spec
        if name not in known
        for hint in [did_you_mean(str(name)[:40], known, quote="`")]
    ]
    if errors:
        raise combine_errors(errors[:20])
    return dict(spec)


def _text_field(fields: Mapping[str, Any], name: str) -> str:
    text = fields.get(name)
    if isinstance(text, str):
        return text
    raise _bad("field", f"`{name}` must be given, as text.")


def _integer(fields: Mapping[str, Any], name: str, most: int) -> int:
    value = fields.get(name, most)
    if type(value) is int and 1 <= value <= most:
        return value
    raise _bad("value", f"`{name}` must be an integer from 1 to {most}.", path=name)


def _one_of(fields: Mapping[str, Any], name: str, *words: str) -> str:
    word = fields.get(name)
    if isinstance(word, str) and word in words:
        return word
    raise _bad("operator", f"`{name}` must be one of {', '.join(words)}.", path=name)


def _either(fields: Mapping[str, Any], *names: str) -> str:
    given = [name for name in names if name in fields]
    if len(given) == 1:
        return given[0]
    raise _bad("field", f"exactly one of {' and '.join(f'`{name}`' for name in names)} must be given.")


def _decoded(content: Any) -> Any:
    if not isinstance(content, bytes | str):
        return content
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _bad("reference", "the content of the reference is not JSON.") from None


# Errors


def _prefix_errors(path: str, attempt: Callable[[], T]) -> T:
    """Return the result of an attempt. If it fails, prefix the paths of its errors with ``path``."""
    try:
        return attempt()
    except BadExpression as error:
        raise combine_errors([each.inside(path) for each in error.errors]) from None


def _all_errors(*attempts: Callable[[], Any]) -> list[Any]:
    """Return the results of all attempts, or raise one exception with all their errors."""
    results: list[Any] = []
    errors: list[ExpressionError] = []
    for attempt in attempts:
        try:
            results.append(attempt())
        except BadExpression as error:
            errors += error.errors
    if errors:
        raise combine_errors(errors)
    return results


def _bad(code: str, message: str, hint: str = "", path: str = "") -> BadExpression:
    return combine_errors([ExpressionError(f"condition.{code}", message, path=path, hint=hint)])


def _no_kind(given: list[str], spec: Mapping[str, Any], kinds: list[str]) -> BadExpression:
    if given:
        both = " and ".join(f"`{kind}`" for kind in given)
        return _bad("kind", f"{both} are separate conditions; combine them with `all` or `any`.")
    names = [shorten(str(name), 40) for name in list(spec)[:5]]
    hint = next((hint for name in names if (hint := did_you_mean(name, kinds, quote="`"))), "")
    present = f", only {', '.join(f'`{name}`' for name in names)}" if names else ""
    return _bad("kind", f"the condition has none of the fields {', '.join(kinds)}{present}.", hint)


def _type_name(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
