"""What people fill into a form is read as its schema says."""

from __future__ import annotations

from weft.server.endpoints.forms import JSON_FIELD, parse_form

DEEP = "[" * 2_000 + "]" * 2_000


def test_text_that_is_nested_too_deeply_for_json_stays_text() -> None:
    assert parse_form({"type": "array"}, {JSON_FIELD: DEEP}) == DEEP
