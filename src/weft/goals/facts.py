"""Read the inputs and outputs of a step: ``needs`` and ``gives``, or ``attributes`` with roles in the older format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.core.findings import At
from weft.core.goal.definitions import METADATA, Collect, Give, Need, Role
from weft.core.goal.types import Type
from weft.documents.fields import Fields, describe
from weft.goals.values import read_deadline, read_goal_script, read_json_value, read_ms

NEED = ("type", "default", "optional", "const", "meta", "collect", "match", "mapping", "each", "deadline", "name")
GIVE = ("type", "name", "mapping", "whole")
ROLES: dict[str, str] = {word: word for word in ("required", "optional", "const", "meta", "output")}
ATTRIBUTE = (
    *ROLES, "role", "type", "default", "value", "for_each", "deadline", "collect", "match", "mapping", "key",
    "description",
)  # fmt: skip
MAPPING = ("name", "script", "language")
COLLECT: dict[str, Collect] = {"first": "first", "last": "last", "some": "some", "all": "all", "none": "none"}
_SCHEMA = frozenset({
    "$schema", "$ref", "$defs", "properties", "required", "additionalProperties", "patternProperties", "items", "enum",
    "anyOf", "oneOf", "allOf", "not", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
    "maxLength", "minItems", "maxItems", "uniqueItems", "prefixItems", "pattern", "format", "description", "title",
    "examples",
})  # fmt: skip
_BLOCKS: dict[str, tuple[str, ...]] = {
    "required": ("collect", "for_each", "match", "mapping"),
    "optional": ("collect", "for_each", "default", "deadline", "mapping"),
    "const": ("value", "default"),
    "meta": ("key",),
    "output": ("mapping",),
}
_SETTINGS = frozenset(key for block in _BLOCKS.values() for key in block)


class FactFields:
    """The needs and gives of one step, and their locations in the document."""

    def __init__(self, step: Fields) -> None:
        self.step = step
        self.needs: dict[str, Need] = {}
        self.gives: dict[str, Give] = {}
        self.places: dict[str, At] = {}
        """The locations in the document of ``needs.x`` and ``gives.x``, as the catalogue names them."""

    def read(self) -> None:
        """Read the needs and gives, in either spelling."""
        step = self.step
        if "attributes" in step:
            for key in ("needs", "gives"):
                if key in step:
                    step.spelling("attributes", key)
            self._read_attributes()
            return
        for fact, raw, at in _named_facts(step, "needs"):
            self.places[f"needs.{fact}"] = at
            self.needs[fact] = self._read_need(raw, at)
        for fact, raw, at in _named_facts(step, "gives"):
            self.places[f"gives.{fact}"] = at
            self.gives[fact] = self._read_give(raw, at)

    def _read_need(self, raw: Any, at: At) -> Need:
        if raw is None or isinstance(raw, str):
            return Need(type=raw)
        need = Fields(raw, at, self.step.problems, (*NEED, *_SCHEMA))
        role: Role = "required"
        if "const" in need and "meta" in need:
            need.spelling("const", "meta")
        if "const" in need or "meta" in need:
            role = "const"
        elif need.flag("optional", default="default" in need):
            role = "optional"
        return Need(
            role=role,
            type=_read_type(need, NEED),
            name=need.text("name"),
            collect=need.choice("collect", COLLECT, "first"),
            match=read_goal_script(need, "match"),
            mapping=read_goal_script(need, "mapping"),
            each=need.flag("each", default=False),
            default=need.raw.get("default", msgspec.UNSET),
            deadline=read_deadline(need, "deadline"),
            value=need.raw.get("const", msgspec.UNSET),
            meta=need.text("meta"),
        )

    def _read_give(self, raw: Any, at: At) -> Give:
        if raw is None or isinstance(raw, str):
            return Give(type=raw)
        give = Fields(raw, at, self.step.problems, (*GIVE, *_SCHEMA))
        return Give(
            type=_read_type(give, GIVE),
            key=give.text("name"),
            whole=give.flag("whole", default=False),
            mapping=read_goal_script(give, "mapping"),
        )

    # --- attributes ---------------------------------------------------------------------------------------------

    def _read_attributes(self) -> None:
        for fact, raw, at in _named_facts(self.step, "attributes"):
            spec = Fields(raw, at, self.step.problems, ATTRIBUTE)
            if spec.raw and "role" not in spec:
                spec.needed("role")
            role = spec.choice("role", ROLES, None)
            if role is None:
                continue
            fields = _role_settings(spec, role)
            for key in fields.raw:
                if key in _SETTINGS and key not in _BLOCKS[role]:
                    spec.problems.add("unknown_field", spec.place(key), f"{key} does not apply to the role {role}.")
            if role == "output":
                self.places[f"gives.{fact}"] = at
                self.gives[fact] = self._read_output(fields)
            else:
                self.places[f"needs.{fact}"] = at
                self.needs[fact] = self._read_input(fields, role)

    def _read_input(self, spec: Fields, role: Any) -> Need:
        name, script = self._read_name_and_script(spec)
        if role == "meta":
            if "key" not in spec:
                spec.needed("key")
            return Need(role="const", type=_read_type(spec, ATTRIBUTE), name=name, meta=spec.text("key") or METADATA[0])
        deadline = read_deadline(spec, "deadline") if spec.raw.get("deadline") == "wait" else read_ms(spec, "deadline")
        value_key = spec.spelling("value", "default") if role == "const" else "value"
        return Need(
            role=role,
            type=_read_type(spec, ATTRIBUTE),
            name=name,
            mapping=script,
            collect=spec.choice("collect", COLLECT, "first"),
            match=read_goal_script(spec, "match"),
            each=spec.flag("for_each", default=False),
            default=read_json_value(spec, "default") if "default" in spec and role != "const" else msgspec.UNSET,
            deadline=deadline or None,
            value=read_json_value(spec, value_key) if value_key in spec else msgspec.UNSET,
        )

    def _read_output(self, spec: Fields) -> Give:
        name, script = self._read_name_and_script(spec)
        return Give(type=_read_type(spec, ATTRIBUTE), key=name, mapping=script)

    def _read_name_and_script(self, spec: Fields) -> tuple[str, Any]:
        """Read the inner name of a fact, and the script that converts its value."""
        if "mapping" not in spec:
            return "", None
        mapping = Fields(spec.raw["mapping"], spec.place("mapping"), spec.problems, MAPPING)
        if "script" not in mapping:
            return mapping.text("name"), None
        if isinstance(mapping.raw["script"], dict) or "language" not in mapping:
            return mapping.text("name"), read_goal_script(mapping, "script")
        both = {"script": {key: mapping.raw[key] for key in ("language", "script")}}
        return mapping.text("name"), read_goal_script(Fields(both, mapping.at, spec.problems, MAPPING), "script")


def _named_facts(step: Fields, key: str) -> Iterator[tuple[str, Any, At]]:
    raw = step.raw.get(key)
    if raw is None:
        return
    if isinstance(raw, list) and all(isinstance(name, str) and name for name in raw):
        yield from ((name, None, (*step.place(key), index)) for index, name in enumerate(raw))
    elif isinstance(raw, dict):
        yield from ((name, value, (*step.place(key), name)) for name, value in raw.items())
    else:
        step.wrong(key, "a mapping of facts to types, or a list of facts")


def _role_settings(spec: Fields, role: str) -> Fields:
    """Return the settings of an attribute: next to its role, or in a block with the name of the role."""
    for other, known in _BLOCKS.items():
        if other not in spec:
            continue
        if other != role:
            message = f"{other} does not apply to the role {role}."
            spec.problems.add("unknown_field", spec.place(other), message)
            continue
        block = Fields(spec.raw[other], spec.place(other), spec.problems, known)
        for key in block.raw:
            spec.spelling(key, other) if key in spec else None
        merged = Fields({**spec.raw, **block.raw}, spec.at, spec.problems, (*ATTRIBUTE, *block.raw))
        merged.raw.pop(other)
        return merged
    return spec


def _read_type(fields: Fields, own: tuple[str, ...]) -> Type:
    """Read a type: a word, JSON Schema under ``type``, or keywords of JSON Schema among the other fields."""
    raw = fields.raw.get("type")
    if raw is not None and not isinstance(raw, str | dict):
        fields.wrong("type", f"a type or JSON Schema, not {describe(raw)}")
        return None
    keywords = {key: value for key, value in fields.raw.items() if key in _SCHEMA and key not in own}
    if not keywords.keys() - {"description", "title", "examples"}:
        return raw
    if isinstance(raw, dict):
        fields.problems.add(
            "two_spellings", fields.at, "type is a JSON Schema, but there are also keywords of JSON Schema next to it."
        )
        return raw
    return keywords if raw is None else {"type": raw, **keywords}
