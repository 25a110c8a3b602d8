"""The form of a question as HTML, and its input as JSON.

A flat schema becomes one input per field; a nested one becomes a text area for JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import msgspec

from weft.runtime.schemas import check_schema

PREFIX = "form."
WHOLE = "form"
FIELDS_MAX = 50


def resolved(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Resolve the references of a schema. Returns it with its definitions."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    found: Any = schema
    for _ in range(10):
        name = found.get("$ref", "").rpartition("/")[2] if isinstance(found, dict) else ""
        if not name:
            break
        found = definitions.get(name, {})
    return (dict(found) if isinstance(found, dict) else {}), definitions


def fields_of(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the fields of a flat form with their schemas; None if it is nested."""
    whole, definitions = resolved(schema)
    properties = whole.get("properties")
    if not isinstance(properties, dict) or not 0 < len(properties) <= FIELDS_MAX:
        return None
    return {
        name: {**resolved({**field, "$defs": definitions})[0], "$defs": definitions}
        for name, field in properties.items()
    }


def inputs(schema: Mapping[str, Any], filled: Mapping[str, str]) -> str:
    """Return the inputs of a form as HTML, with the earlier input."""
    fields = fields_of(schema)
    if fields is None:
        text = escape(filled.get(WHOLE, ""))
        return f'<label>Form, as JSON<textarea name="{WHOLE}" rows=8 required>{text}</textarea></label>'
    required = resolved(schema)[0].get("required", [])
    return "".join(
        _input(name, field, filled.get(PREFIX + name), required=name in required) for name, field in fields.items()
    )


def _input(name: str, field: Mapping[str, Any], typed: str | None, *, required: bool) -> str:
    key, title = escape(PREFIX + name, quote=True), escape(str(field.get("title", name)))
    must = " required" if required and typed is None else ""
    default = field.get("default")
    value = typed if typed is not None else "" if default is None else _shown(default)
    if "enum" in field:
        options = "".join(
            f'<option value="{escape(_shown(one), quote=True)}"{" selected" if _shown(one) == value else ""}>'
            f"{escape(_shown(one))}</option>"
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


def filled_in(schema: Mapping[str, Any], filled: Mapping[str, str]) -> Any:
    """Read the input of a form: as text where the schema allows it, else as JSON. It is validated later."""
    fields = fields_of(schema)
    if fields is None:
        return _plain(filled.get(WHOLE, ""))
    required = resolved(schema)[0].get("required", [])
    found: dict[str, Any] = {}
    for name, field in fields.items():
        text = filled.get(PREFIX + name)
        if field.get("type") == "boolean":
            found[name] = text == "true"
        elif text is not None and (text or name in required):
            found[name] = text if check_schema(dict(field), msgspec.json.encode(text)) is None else _plain(text)
    return found


def _plain(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
