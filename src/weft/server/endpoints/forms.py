"""Render the form of a question as HTML, and read its input as JSON.

A flat schema becomes one input per field; a nested one becomes a text area for JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import msgspec

from weft.runtime.schema_check import check_schema

PREFIX = "form."
JSON_FIELD = "form"
FIELDS_MAX = 50


def resolve_references(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Resolve the reference at the top of a schema. Returns the schema, with what stands beside it, and definitions."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    found: Any = schema
    for _ in range(10):
        name = found.get("$ref", "").rpartition("/")[2] if isinstance(found, dict) else ""
        if not name:
            break
        target, beside = definitions.get(name, {}), {key: value for key, value in found.items() if key != "$ref"}
        found = {**target, **beside} if isinstance(target, dict) else {}
    return (dict(found) if isinstance(found, dict) else {}), definitions


def flat_fields(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the fields of a flat form with their schemas; None if it is nested."""
    whole, definitions = resolve_references(schema)
    properties = whole.get("properties")
    if not isinstance(properties, dict) or not 0 < len(properties) <= FIELDS_MAX:
        return None
    default = whole.get("default")
    filled = default if isinstance(default, dict) else {}
    return {
        name: {
            **resolve_references({**field, "$defs": definitions})[0],
            **({"default": filled[name]} if name in filled else {}),
            "$defs": definitions,
        }
        for name, field in properties.items()
    }


def render_inputs(schema: Mapping[str, Any], filled: Mapping[str, str]) -> str:
    """Return the inputs of a form as HTML, filled with the earlier input."""
    fields = flat_fields(schema)
    if fields is None:
        text = escape(filled.get(JSON_FIELD, _as_text(schema["default"]) if "default" in schema else ""))
        return f'<label>Form, as JSON<textarea name="{JSON_FIELD}" rows=8 required>{text}</textarea></label>'
    required = resolve_references(schema)[0].get("required", [])
    return "".join(
        _input(name, field, filled.get(PREFIX + name), required=name in required) for name, field in fields.items()
    )


def _input(name: str, field: Mapping[str, Any], entered: str | None, *, required: bool) -> str:
    key, title = escape(PREFIX + name, quote=True), escape(str(field.get("title", name)))
    must = " required" if required and entered is None else ""
    default = field.get("default")
    value = entered if entered is not None else "" if default is None else _as_text(default)
    if "enum" in field:
        options = "".join(
            f'<option value="{escape(_as_text(one), quote=True)}"{" selected" if _as_text(one) == value else ""}>'
            f"{escape(_as_text(one))}</option>"
            for one in field["enum"]
        )
        none = "" if required else "<option></option>"
        return f'<label>{title}<select name="{key}"{must}>{none}{options}</select></label>'
    if field.get("type") == "boolean":
        checked = " checked" if value == "true" else ""
        return f'<label><input type=checkbox name="{key}" value="true"{checked}> {title}</label>'
    if field.get("type") in ("integer", "number"):
        step = "1" if field["type"] == "integer" else "any"
        number = f'type=number step={step} name="{key}" value="{escape(value, quote=True)}"'
        return f"<label>{title}<input {number}{must}></label>"
    return f'<label>{title}<input name="{key}" value="{escape(value, quote=True)}" maxlength=10000{must}></label>'


def parse_form(schema: Mapping[str, Any], filled: Mapping[str, str]) -> Any:
    """Read the input of a form, as a string where the schema allows it, otherwise as JSON. It is validated later."""
    fields = flat_fields(schema)
    if fields is None:
        return _parse_json(filled.get(JSON_FIELD, ""))
    required = resolve_references(schema)[0].get("required", [])
    found: dict[str, Any] = {}
    for name, field in fields.items():
        text = filled.get(PREFIX + name)
        if field.get("type") == "boolean":
            found[name] = text == "true"
        elif text is not None and (text or name in required):
            found[name] = text if check_schema(dict(field), msgspec.json.encode(text)) is None else _parse_json(text)
    return found


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
