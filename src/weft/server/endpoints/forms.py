"""A form as plain HTML, and what was filled in as JSON. A flat schema has a field for each of its own; a deeper one is
typed as JSON.
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
    """The schema behind its references, and what it refers to."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    found: Any = schema
    for _ in range(10):
        name = found.get("$ref", "").rpartition("/")[2] if isinstance(found, dict) else ""
        if not name:
            break
        found = definitions.get(name, {})
    return (dict(found) if isinstance(found, dict) else {}), definitions


def fields_of(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """The fields of a flat form with their schemas; None if it is none."""
    whole, definitions = resolved(schema)
    properties = whole.get("properties")
    if not isinstance(properties, dict) or not 0 < len(properties) <= FIELDS_MAX:
        return None
    return {
        name: {**resolved({**field, "$defs": definitions})[0], "$defs": definitions}
        for name, field in properties.items()
    }


def inputs(schema: Mapping[str, Any], filled: Mapping[str, str]) -> str:
    """The fields of a form as HTML, with what was typed before."""
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
    """What was typed: as text where that fits, else as JSON. Whether it fits the form is for the question to say."""
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
