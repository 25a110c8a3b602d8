"""The shape of a pipeline: its steps with holes where the data of one use stood. Pure.

Two pipelines of the same shape do the same with other values, so a shape that succeeds in several runs is worth a tool
of its own: its holes are the parameters.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.agents.tools.spec import NAME_CHARS_MAX
from weft.errors import BadValue

_HOLE: Final = "$hole"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_]+")
_SHORT: Final = {"http_request": "fetch", "jq_transform": "jq", "regex_extract": "regex", "groupby": "group"}
_TYPES: Final = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Hole(msgspec.Struct, frozen=True):
    """A parameter of a shape: its name, and the JSON type of the values that stood there."""

    name: str
    type: str


class PipelineShape(msgspec.Struct, frozen=True):
    """A pipeline with holes. In its steps, a hole is ``{"$hole": name}``."""

    steps: tuple[Any, ...]
    holes: tuple[Hole, ...]

    @property
    def digest(self) -> str:
        """What all pipelines of this shape have in common."""
        return hashlib.sha256(_canonical([self.steps, self.holes])).hexdigest()[:32]

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the parameters."""
        properties = {hole.name: {"type": hole.type} if hole.type else {} for hole in self.holes}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def fill(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the pipeline with these values in its holes. Raises BadValue."""
        names = [hole.name for hole in self.holes]
        missing = [name for name in names if name not in arguments]
        unknown = [name for name in arguments if name not in names]
        if missing or unknown:
            wrong = f"{missing[0]} is missing" if missing else f"there is no parameter {unknown[0][:60]}"
            raise BadValue(f"The tool cannot be called like this: {wrong}.", hint=f"It takes {', '.join(names)}.")
        filled: list[Any] = _filled(list(self.steps), arguments)
        return filled


def shape_of_pipeline(pipeline: Sequence[Mapping[str, Any]]) -> PipelineShape:
    """Return the shape of a pipeline that was checked."""
    holes: list[Hole] = []

    def hole(name: str, value: Any) -> dict[str, str]:
        base = _OTHER.sub("_", name).strip("_") or "value"
        taken = {each.name for each in holes}
        free = base
        number = 2
        while free in taken:
            free, number = f"{base}_{number}", number + 1
        holes.append(Hole(free, _TYPES.get(type(value), "")))
        return {_HOLE: free}

    def condition(of: Mapping[str, Any]) -> dict[str, Any]:
        return {**of, "value": hole(str(of["field"]), of["value"])}

    steps: list[Any] = []
    for step in pipeline:
        made = dict(step)
        if isinstance(step.get("condition"), Mapping):
            made["condition"] = condition(step["condition"])
        elif "condition" in step:
            made["condition"] = [condition(each) for each in step["condition"]]
        for name in ("k", "params", "query", "left", "right"):
            if name in step:
                made[name] = hole(name, step[name])
        steps.append(made)
    return PipelineShape(tuple(steps), tuple(holes))


def shape_name(shape: PipelineShape) -> str:
    """Return a name for a tool of this shape, made of the names of its steps."""
    words = [_SHORT.get(step["step"], step["step"].removeprefix("table_")) for step in shape.steps]
    return "_".join(words)[: NAME_CHARS_MAX - 4]


def shape_text(shape: PipelineShape) -> str:
    """Describe what a tool of this shape does."""
    parts = []
    for step in shape.steps:
        about = {name: value for name, value in step.items() if name in ("url", "field", "fields", "by", "agg", "on")}
        condition = step.get("condition")
        if condition:
            fields = [condition] if isinstance(condition, Mapping) else condition
            about["condition"] = " and ".join(f"{each['field']} {each['op']} ..." for each in fields)
        said = ", ".join(f"{name} {value}" for name, value in about.items())
        parts.append(f"{step['step']}{f' ({said})' if said else ''}")
    return f"Pipeline: {'; '.join(parts)}."


def _filled(value: Any, arguments: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {_HOLE}:
            return arguments[value[_HOLE]]
        return {name: _filled(part, arguments) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(part, arguments) for part in value]
    return value
