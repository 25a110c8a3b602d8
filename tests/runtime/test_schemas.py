"""What is wrong with JSON, by the path of its field."""

from typing import Any

import msgspec
import pytest

from weft.runtime.schema_check import FINDINGS_MAX, MESSAGE_CHARS_MAX, check_schema, schema_findings

ORDER = {
    "type": "object",
    "required": ["id", "lines"],
    "properties": {
        "id": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "required": ["a/b"]}},
    },
}


def findings(value: object) -> list[tuple[str, str]]:
    return [(one["path"], one["message"]) for one in schema_findings(ORDER, msgspec.json.encode(value))]


def test_json_that_matches_has_no_findings() -> None:
    assert findings({"id": "o", "lines": [{"a/b": 1}]}) == []


def test_all_findings_lie_at_their_fields() -> None:
    assert sorted(findings({"id": 3, "lines": [{"a/b": 1}, {}]})) == [
        ("/id", '3 is not of type "string"'),
        ("/lines/1/a~1b", "This is needed."),
    ]


def test_a_missing_field_is_found_at_its_own_path() -> None:
    assert findings({}) == [("/id", "This is needed."), ("/lines", "This is needed.")]
    assert check_schema(ORDER, b"{}") == '"id" is a required property'


def test_many_findings_are_cut() -> None:
    assert len(findings({"id": "o", "lines": [{}] * 200})) == FINDINGS_MAX


def test_a_message_quotes_only_the_ends_of_a_large_value() -> None:
    large = {"id": ["x" * 1_000_000], "lines": []}

    ((path, message),) = findings(large)
    told = check_schema(ORDER, msgspec.json.encode(large))

    assert path == "/id"
    assert len(message) <= MESSAGE_CHARS_MAX + 3
    assert message.startswith('["xxx')
    assert message.endswith('is not of type "string"')
    assert told is not None
    assert told.endswith(message)


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"pattern": "(unclosed"}, {"$ref": "https://x.example/schema"}, {"properties": [1]}],
)
def test_a_schema_that_is_none_is_a_finding(schema: dict[str, Any]) -> None:
    told = check_schema(schema, b'"x"')

    assert told is not None
    assert told.startswith("The schema is not valid: ")
    assert schema_findings(schema, b'"x"') == [{"path": "", "message": told}]
