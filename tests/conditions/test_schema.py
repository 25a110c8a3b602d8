"""JSON Schema as a condition: right, local, and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from weft.conditions import BadExpression, EvaluationFailed, compile_condition

SCHEMA = {
    "type": "object",
    "required": ["status", "data"],
    "properties": {"status": {"const": "success"}, "data": {"type": "array", "minItems": 1}},
}


def fits(schema: Any, output: Any) -> bool:
    return compile_condition({"schema": schema}).evaluate({"output": output}).value


def test_an_output_fits_or_does_not() -> None:
    good, bad = {"status": "success", "data": [1]}, {"status": "success", "data": []}

    assert fits(SCHEMA, good)
    assert not fits(SCHEMA, bad)
    assert not compile_condition({"not_schema": SCHEMA}).evaluate({"output": good}).value
    assert compile_condition({"not_schema": SCHEMA}).evaluate({"output": bad}).value


def test_a_verdict_shows_the_output() -> None:
    assert compile_condition({"schema": True}).evaluate({"output": {"a": 1}}).seen == {"output": {"a": 1}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (True, 1, None),
        ({"type": "integer"}, 2**70, 1.5),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "ABC"),
        ({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}, [1, 2.5], ["a"]),
        ({"$defs": {"n": {"$anchor": "num", "type": "number"}}, "$ref": "#num"}, 1, "a"),
        (
            {"properties": {"next": {"$ref": "#"}}, "required": ["id"]},
            {"id": 1, "next": {"id": 2}},
            {"id": 1, "next": {}},
        ),
        (
            {"properties": {"a": {"type": "string"}}, "unevaluatedProperties": False},
            {"a": "x"},
            {"a": "x", "b": 1},
        ),
        (
            {"properties": {"a~b/c": {"$ref": "#/definitions/x~1y"}}, "definitions": {"x/y": {"const": 1}}},
            {"a~b/c": 1},
            {"a~b/c": 2},
        ),
        ({"prefixItems": [{"type": "string"}], "items": {"$ref": "#/prefixItems/0"}}, ["a", "b"], ["a", 1]),
    ],
)
def test_schemas_mean_what_the_standard_says(schema: Any, good: Any, bad: Any) -> None:
    assert fits(schema, good)
    assert schema is True or not fits(schema, bad)


@pytest.mark.parametrize(
    "ref",
    ["https://example.com/x.json", "http://127.0.0.1:1/x", "file:///etc/passwd", "other.json", "//host/x", "urn:x:y"],
)
def test_a_schema_refers_only_to_itself(ref: str) -> None:
    for schema in (
        {"$ref": ref},
        {"properties": {"a": {"items": {"$ref": ref}}}},
        {"$defs": {"a": {"$ref": ref}}, "$ref": "#/$defs/a"},
    ):
        with pytest.raises(BadExpression, match="may refer only to itself"):
            compile_condition({"schema": schema})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "the schema is not valid"),
        ({"minimum": "a"}, "the schema is not valid"),
        ({"$ref": "#/nope"}, "the schema is not valid"),
        ({"pattern": "("}, "the schema is not valid"),
        ({"pattern": "(?=a)b"}, "the schema is not valid"),
        ({"$schema": "https://example.com/mine"}, "the schema is not valid"),
        (["a"], "a schema must be an object"),
        (None, "a schema must be an object"),
        ({"$defs": {"a": {"$id": "https://example.com/b"}}}, "`$id`"),
        ("string", "a reference must look like"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(BadExpression) as caught:
        compile_condition({"schema": schema})
    assert said in str(caught.value)
    assert caught.value.errors[0].path == "schema"


@pytest.mark.parametrize("word", ["anyOf", "allOf", "oneOf"])
def test_references_that_multiply_are_refused(word: str) -> None:
    defs: dict[str, Any] = {
        f"d{i}": {word: [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(20)
    }
    with pytest.raises(BadExpression, match="more than 10,000 parts"):
        compile_condition({"schema": {"$defs": {**defs, "d20": {"const": 1}}, "$ref": "#/$defs/d0"}})


def test_a_recursive_schema_takes_no_longer_for_a_deep_value() -> None:
    part = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    value: Any = 1
    for _ in range(90):
        value = {"a": value}

    assert not fits({"anyOf": [part, {**part, "minProperties": 1}, {"const": 7}]}, value)


def test_deep_and_big_schemas_are_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(120):
        deep = {"properties": {"a": deep}}
    with pytest.raises(BadExpression, match="nested deeper"):
        compile_condition({"schema": deep})
    with pytest.raises(BadExpression, match="more than 10,000 parts"):
        compile_condition({"schema": {"anyOf": [{"const": i} for i in range(20_000)]}})


def test_a_chain_of_references_is_bounded_too() -> None:
    defs: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(3_000)}
    with pytest.raises(BadExpression, match="nested deeper"):
        compile_condition({"schema": {"$defs": {**defs, "d3000": True}, "$ref": "#/$defs/d0"}})


def test_a_pattern_on_too_much_text_is_a_failure_not_a_wait() -> None:
    condition = compile_condition({"schema": {"items": {"pattern": "(?i)(s|ſ|k)*.{500}Z"}}})

    with pytest.raises(EvaluationFailed) as caught:
        condition.evaluate({"output": ["aéſb" * 50_000]})

    assert caught.value.code == "expression.limit"
    assert not condition.evaluate({"output": ["abc"]}).value


def test_what_is_not_json_is_a_failure() -> None:
    with pytest.raises(EvaluationFailed, match="not JSON"):
        fits({"type": "object"}, {1, 2})
    with pytest.raises(EvaluationFailed, match="no `output`"):
        compile_condition({"schema": True}).evaluate({})


def test_a_reference_to_a_blob_is_resolved_when_it_is_compiled() -> None:
    asked: list[str] = []

    def resolve(reference: str) -> bytes:
        asked.append(reference)
        return b'{"type": "integer"}'

    for spec in ({"schema": "cas://sha256:ab"}, {"type": "schema_validation", "schema_ref": "cas://sha256:ab"}):
        condition = compile_condition(spec, resolve=resolve)
        assert condition.evaluate({"output": 1}).value
        assert not condition.evaluate({"output": "x"}).value
    assert asked == ["cas://sha256:ab"] * 2


@pytest.mark.parametrize(
    ("resolve", "said"),
    [
        (None, "cannot be loaded"),
        (lambda _ref: None, "does not exist"),
        (lambda _ref: b"{", "not JSON"),
        (lambda _ref: b'{"type": "strin"}', "the schema is not valid"),
        (lambda ref: {}[ref], "cas://"),
    ],
)
def test_a_reference_that_cannot_be_had_is_an_error(resolve: Any, said: str) -> None:
    with pytest.raises(BadExpression, match=said):
        compile_condition({"schema": "cas://sha256:ab"}, resolve=resolve)
