"""Words become values as the parameter's type wants them."""

from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest

from weft.cli.arguments import keep_text, read_arguments, split_pairs
from weft.cli.questions import read_form_option
from weft.errors import UsageError
from weft.runtime.typed_words import parse_by_codec, parse_word, reader_for_schema, reader_for_signature
from weft.steps.codec import Codec
from weft.steps.signature import Signature


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (str, "17", "17"),
        (str, "true", "true"),
        (str, '"quoted"', '"quoted"'),
        (int, "17", 17),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (list[int], "[1, 2]", [1, 2]),
        (list[str], "a,b", "a,b"),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (int | None, "null", None),
        (str | None, "null", None),
        (str | None, "17", "17"),
        (Literal["1", "2"], "1", "1"),
        (date, "2026-01-31", "2026-01-31"),
        (Any, "17", 17),
        (Any, "o-1", "o-1"),
        (int, "many", "many"),
        (int, "1.5", 1.5),
    ],
)
def test_a_word_is_read_as_its_parameter_wants_it(type_: Any, text: str, expected: object) -> None:
    read = parse_by_codec(text, Codec.of(type_))

    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("17", 17), ("[1]", [1]), ("o-1", "o-1"), ("", ""), ("{broken", "{broken"), ("\udc80", "\udc80")],
)
def test_without_a_type_json_is_json_and_the_rest_is_text(text: str, expected: object) -> None:
    assert parse_word(text) == expected


def test_a_reference_in_a_schema_is_followed() -> None:
    read = reader_for_schema(
        {
            "properties": {"n": {"$ref": "#/$defs/Count"}, "sku": {"type": "string"}},
            "$defs": {"Count": {"type": "integer"}},
        }
    )

    assert (read("n", "3"), read("sku", "007"), read("sku", "7"), read("other", "7")) == (3, "007", "7", 7)


def test_a_value_may_contain_an_equals_sign() -> None:
    assert split_pairs(["query=a=b", "empty="]) == {"query": "a=b", "empty": ""}


@pytest.mark.parametrize(
    ("words", "problem"), [(["order_id"], "is not KEY=VALUE"), (["=1"], "is not KEY=VALUE"), (["a=1", "a=2"], "twice")]
)
def test_words_that_name_nothing_are_refused(words: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        split_pairs(words)


def test_what_is_typed_goes_over_what_the_file_says(tmp_path: Path) -> None:
    source = tmp_path / "input.json"
    source.write_text('{"order_id": "o-1", "n": 3}')

    def order(order_id: str, n: int) -> None: ...

    assert read_arguments(["n=4"], str(source), reader_for_signature(Signature.of(order))) == {
        "order_id": "o-1",
        "n": 4,
    }


@pytest.mark.parametrize(
    ("content", "problem"), [("[1]", "not a JSON object"), ("{", "is not JSON"), (None, "cannot be read")]
)
def test_an_input_file_that_holds_no_arguments_is_refused(tmp_path: Path, content: str | None, problem: str) -> None:
    source = tmp_path / "input.json"
    if content is not None:
        source.write_text(content)

    with pytest.raises(UsageError, match=problem):
        read_arguments([], str(source), keep_text)


FORM = {
    "$ref": "#/$defs/Ship",
    "$defs": {
        "Ship": {
            "type": "object",
            "properties": {
                "carrier": {"enum": ["dhl", "1"]},
                "note": {"type": "string"},
                "boxes": {"type": "integer"},
                "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["carrier=1", "note=17", "boxes=2", "new=3"], {"carrier": "1", "note": "17", "boxes": 2, "new": 3}),
        (["maybe=x"], {"maybe": "x"}),
        (['{"carrier": "dhl"}'], {"carrier": "dhl"}),
        (['{"note": "a=b"}'], {"note": "a=b"}),
        (["true"], True),
    ],
)
def test_a_form_is_read_as_its_schema_wants_it(words: list[str], expected: object) -> None:
    assert read_form_option(words, FORM) == expected


def test_fields_change_the_default_of_a_form() -> None:
    schema = {
        "properties": {"cents": {"type": "integer"}, "to": {"type": "string"}},
        "default": {"cents": 1, "to": "x"},
    }
    assert read_form_option(["cents=2"], schema) == {"cents": 2, "to": "x"}
    assert read_form_option(['{"cents": 2}'], schema) == {"cents": 2}


def test_a_form_that_is_neither_json_nor_fields_is_refused() -> None:
    with pytest.raises(UsageError, match="neither JSON nor KEY=VALUE"):
        read_form_option(["dhl"], FORM)
