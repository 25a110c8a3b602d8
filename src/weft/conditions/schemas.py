"""JSON Schema as a condition: compiled once by jsonschema-rs. Nothing is fetched, and the work is bounded.

A schema may refer only to itself. Rejected are chains of references that multiply (each level of
`anyOf: [{$ref: x}, {$ref: x}]` doubles the work) and patterns that need backtracking.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from weft.conditions.budget import Evaluation, EvaluationFault
from weft.conditions.failures import BadExpression, ExpressionError, cut, refusal
from weft.conditions.patterns import pattern_options, steps_per_char

PARTS_MAX: Final = 10_000
DEPTH_MAX: Final = 100
VALUE_DEPTH_MAX: Final = 200
_FREE_PARTS: Final = 64
_DEEP = ("$ref", "$dynamicRef", "uniqueItems")
_DEFINITIONS = ("$defs", "definitions")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Schema:
    """A compiled schema."""

    __slots__ = ("_looks_first", "_parts", "_pattern_steps", "_validator", "text")

    def __init__(self, schema: Any, raw: bytes) -> None:
        import jsonschema_rs  # noqa: PLC0415  # heavy, and only some conditions need it

        self.text = cut(raw.decode(errors="replace"))
        self._parts = _Measure(schema).expanded(schema, 0)
        self._pattern_steps = sum(steps_per_char(pattern) for pattern in _patterns(schema))
        # Without these keywords, validation goes no deeper than the schema itself. The validator has no depth limit.
        recursive = any(word in part for part in _dicts(schema) for word in _DEEP)
        self._looks_first = recursive or self._pattern_steps > 0 or self._parts > _FREE_PARTS
        try:
            self._validator: Any = jsonschema_rs.validator_for(
                schema, retriever=_refuse, pattern_options=pattern_options()
            )
        except ValueError as error:
            raise _bad(f"not a schema: {_first_line(error)}.") from None

    def fits(self, frame: Evaluation, value: Any) -> bool:
        """Return whether the value fits."""
        if self._looks_first:
            nodes, chars = _measure(frame, value)
            frame.charge(nodes * self._parts // 4 + chars * self._pattern_steps)
        try:
            return bool(self._validator.is_valid(value))
        except (ValueError, TypeError) as error:
            raise EvaluationFault(f"the value is not JSON ({_first_line(error)})") from None


def compile_schema(schema: Any) -> Schema:
    """Compile a schema. Equal schemas are compiled once.

    Raises:
        BadExpression: the value is not a schema, refers to other documents, or is too big.
    """
    if not isinstance(schema, Mapping | bool):
        raise _bad(f"a schema is an object, not a {type(schema).__name__}.")
    try:
        raw = _encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise _bad(f"a schema is JSON ({_first_line(error)}).") from None
    return _compiled(raw)


@lru_cache(maxsize=4_096)
def _compiled(raw: bytes) -> Schema:
    return Schema(msgspec.json.decode(raw), raw)


class _Measure:
    """Counts the parts of a schema as if each reference were replaced by its target."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.anchors = dict(_anchors(schema))
        self.known: dict[int, int] = {}
        self.open: set[int] = set()

    def expanded(self, part: Any, depth: int) -> int:
        if depth > DEPTH_MAX:
            raise _bad(f"the schema is nested deeper than {DEPTH_MAX} levels.", "too_deep")
        if isinstance(part, list):
            return sum(self.expanded(item, depth + 1) for item in part)
        if not isinstance(part, dict):
            return 0
        if id(part) in self.known:
            return self.known[id(part)]
        if id(part) in self.open:  # a recursive schema: the validator remembers which parts it has checked
            return 1
        self.open.add(id(part))
        total = 1 + sum(self._entry(name, value, depth) for name, value in part.items())
        self.open.discard(id(part))
        if total > PARTS_MAX:
            raise _bad(f"with its references replaced the schema has more than {PARTS_MAX:,} parts.", "too_long")
        self.known[id(part)] = total
        return total

    def _entry(self, name: str, value: Any, depth: int) -> int:
        if name in _DEFINITIONS:
            return 0
        if name in ("$ref", "$dynamicRef") and isinstance(value, str):
            return self.expanded(self._target(value), depth + 1)
        return self.expanded(value, depth + 1)

    def _target(self, ref: str) -> Any:
        if not ref.startswith("#"):
            raise _bad(f"a schema refers only to itself (`#/$defs/…`), not to `{cut(ref)}`.")
        pointer = unquote(ref[1:])
        if not pointer.startswith("/"):
            return self.anchors.get(pointer) if pointer else self.schema
        part = self.schema
        for piece in pointer[1:].split("/"):
            key = piece.replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict):
                part = part.get(key)
            elif isinstance(part, list) and key.isdigit() and len(key) < 6:
                part = part[int(key)] if int(key) < len(part) else None
            else:
                return None
        return part


def _dicts(schema: Any) -> list[dict[str, Any]]:
    found, rest = [], [schema]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            found.append(part)
            rest += part.values()
        elif isinstance(part, list):
            rest += part
        if len(found) > PARTS_MAX:
            raise _bad(f"the schema has more than {PARTS_MAX:,} parts.", "too_long")
    return found


def _anchors(schema: Any) -> list[tuple[str, Any]]:
    found = []
    for part in _dicts(schema):
        if part is not schema and isinstance(part.get("$id"), str):
            raise _bad("a schema inside a schema has no `$id` of its own.")
        found += [(part[key], part) for key in ("$anchor", "$dynamicAnchor") if isinstance(part.get(key), str)]
    return found


def _patterns(schema: Any) -> list[str]:
    found: list[str] = []
    for part in _dicts(schema):
        if isinstance(part.get("pattern"), str):
            found.append(part["pattern"])
        if isinstance(part.get("patternProperties"), dict):
            found += part["patternProperties"]
    return found


def _measure(frame: Evaluation, value: Any) -> tuple[int, int]:
    """Count the values and characters, level by level, within the remaining steps."""
    nodes = chars = 0
    level = [value]
    for _ in range(VALUE_DEPTH_MAX):
        if not level:
            return nodes, chars
        nodes += len(level)
        frame.charge(len(level))
        below: list[Any] = []
        for part in level:
            if type(part) is str:
                chars += len(part)
            elif type(part) is list:
                below += part
            elif isinstance(part, Mapping):
                chars += sum(len(name) for name in part if type(name) is str)
                below += part.values()
        level = below
    raise EvaluationFault(f"the value is nested deeper than {VALUE_DEPTH_MAX} levels")


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema refers only to itself, not to {uri}")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return cut(lines[0], 160).rstrip(".") if lines else type(error).__name__


def _bad(message: str, code: str = "schema") -> BadExpression:
    return refusal([ExpressionError(f"expression.{code}", message)])
