"""What people fill into a form is read as its schema says."""

from __future__ import annotations

from weft.server.endpoints.forms import JSON_FIELD, flat_fields, parse_form, render_inputs

DEEP = "[" * 2_000 + "]" * 2_000


def test_text_that_is_nested_too_deeply_for_json_stays_text() -> None:
    assert parse_form({"type": "array"}, {JSON_FIELD: DEEP}) == DEEP


def test_a_form_begins_with_its_default() -> None:
    schema = {
        "type": "object",
        "properties": {"cents": {"type": "integer", "default": 1}, "to": {"$ref": "#/$defs/Name", "title": "To"}},
        "$defs": {"Name": {"type": "string", "title": "A name"}},
        "default": {"cents": 4200, "to": "ann"},
    }
    fields = flat_fields(schema)
    assert fields is not None
    assert [(name, field["default"]) for name, field in fields.items()] == [("cents", 4200), ("to", "ann")]
    shown = render_inputs(schema, {})
    assert 'value="4200"' in shown
    assert 'value="ann"' in shown
    assert 'value="7"' in render_inputs(schema, {"form.cents": "7"})


def test_a_form_that_is_typed_as_json_begins_with_its_default() -> None:
    assert "{&quot;a&quot;:1}" in render_inputs({"type": "object", "default": {"a": 1}}, {})
