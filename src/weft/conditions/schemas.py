"""JSON Schemas in conditions, compiled once by jsonschema-rs. Nothing is fetched, and validation is bounded.

A schema may refer only to itself. It is rejected if its references multiply the work (each level of
``anyOf: [{$ref: x}, {$ref: x}]`` doubles it) or if it has patterns that need backtracking.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from weft.conditions.budget import Evaluation, EvaluationFault
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors, shorten
from weft.conditions.patterns import pattern_options, steps_per_char

PARTS_MAX: Final = 10_000
DEPTH_MAX: Final = 100
VALUE_DEPTH_MAX: Final = 200
_UNMEASURED_PARTS_MAX: Final = 64
_RECURSIVE = ("$ref", "$dynamicRef", "uniqueItems")
_DEFINITIONS = ("$defs", "definitions")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Schema:
    """A compiled schema."""

    __slots__ = ("_measures", "_parts", "_pattern_steps", "_validator", "text")

    def __init__(self, schema: Any, raw: bytes) -> None:
        import jsonschema_rs  # noqa: PLC0415  # heavy, and only some conditions need it

        self.text = shorten(raw.decode(errors="replace"))
        self._parts = _PartCounter(schema).expanded(schema, 0)
        self._pattern_steps = sum(steps_per_char(pattern) for pattern in _patterns(schema))
        # Without these keywords, validation goes no deeper than the schema itself. The validator has no depth limit.
        recursive = any(word in part for part in _dicts(schema) for word in _RECURSIVE)
        self._measures = recursive or self._pattern_steps > 0 or self._parts > _UNMEASURED_PARTS_MAX
        try:
            self._validator: Any = jsonschema_rs.validator_for(
                schema, retriever=_reject_reference, pattern_options=pattern_options()
            )
        except ValueError as error:
            raise _bad(f"the schema is not valid: {_first_line(error)}.") from None

    def is_valid(self, frame: Evaluation, value: Any) -> bool:
        """Return whether a value is valid under the schema.

        Raises:
            EvaluationFault: the value is not JSON, or is nested too deeply.
            StepsUsedUp: the value is too big for the remaining steps.
        """
        if self._measures:
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
        raise _bad(f"a schema must be an object, not a {type(schema).__name__}.")
    try:
        raw = _encode(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise _bad(f"a schema must be JSON ({_first_line(error)}).") from None
    return _compiled(raw)


@lru_cache(maxsize=4_096)
def _compiled(raw: bytes) -> Schema:
    return Schema(msgspec.json.decode(raw), raw)


class _PartCounter:
    """Counts the parts of a schema as if each reference were replaced by its target."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.anchors = dict(_anchors(schema))
        self.counted: dict[int, int] = {}
        self.open: set[int] = set()

    def expanded(self, part: Any, depth: int) -> int:
        if depth > DEPTH_MAX:
            raise _bad(f"the schema is nested deeper than {DEPTH_MAX} levels.", "too_deep")
        if isinstance(part, list):
            return sum(self.expanded(item, depth + 1) for item in part)
        if not isinstance(part, dict):
            return 0
        if id(part) in self.counted:
            return self.counted[id(part)]
        if id(part) in self.open:  # a recursive schema: the validator remembers which parts it has checked
            return 1
        self.open.add(id(part))
        total = 1 + sum(self._entry(name, value, depth) for name, value in part.items())
        self.open.discard(id(part))
        if total > PARTS_MAX:
            raise _bad(f"with its references replaced, the schema has more than {PARTS_MAX:,} parts.", "too_long")
        self.counted[id(part)] = total
        return total

    def _entry(self, name: str, value: Any, depth: int) -> int:
        if name in _DEFINITIONS:
            return 0
        if name in ("$ref", "$dynamicRef") and isinstance(value, str):
            return self.expanded(self._target(value), depth + 1)
        return self.expanded(value, depth + 1)

    def _target(self, ref: str) -> Any:
        if not ref.startswith("#"):
            raise _bad(f"a schema may refer only to itself (`#/$defs/…`), not to `{shorten(ref)}`.")
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
            raise _bad("a nested schema may not have an `$id`.")
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
    """Count the values and characters in a value, level by level, within the remaining steps."""
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


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"a schema may refer only to itself, not to {uri}")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return shorten(lines[0], 160).rstrip(".") if lines else type(error).__name__


def _bad(message: str, code: str = "schema") -> BadExpression:
    return combine_errors([ExpressionError(f"expression.{code}", message)])
