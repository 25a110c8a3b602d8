"""What is wrong with JSON, by the path of its field."""

import msgspec

from weft.runtime.schema_check import FINDINGS_MAX, check_schema, schema_findings

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
