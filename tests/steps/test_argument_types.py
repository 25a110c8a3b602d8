"""What a process without the code refuses by type is refused by the host too; what a host takes is never refused."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import msgspec
import pytest
from pydantic import BaseModel

import weft
from weft.errors import WeftError
from weft.steps.argument_types import argument_types, either_type, is_of_type
from weft.steps.codec import Codec
from weft.steps.signature import Signature


class Colour(enum.Enum):
    RED = "red"
    NONE = 0


class Model(BaseModel):
    n: int = 1


class Row(msgspec.Struct, array_like=True):
    n: int


@dataclass
class Data:
    n: int = 1


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "maybe": int | None,
    "list": list[int],
    "dict": dict[str, int],
    "tuple": tuple[int, str],
    "enum": Colour,
    "literal": Literal["a", 1],
    "model": Model,
    "row": Row,
    "dataclass": Data,
    "union": int | str | Model,
    "decimal": Decimal,
    "datetime": datetime,
    "timedelta": timedelta,
    "bytes": bytes,
    "secret": weft.Secret,
    "any": Any,
}
VALUES: list[Any] = [
    *(None, True, 0, 1, -3, 2.0, 2.5, "", "a", "red", "1", "1.5", "many", "aGk=", "2026-01-01T00:00:00Z", "P1D"),
    *([], [1], [1, "a"], {}, {"n": 1}, {"$secret": "env:A"}),
]


def types_of(type_: Any) -> dict[str, list[str]]:
    async def workflow(x: Any) -> None: ...

    workflow.__annotations__["x"] = type_
    return argument_types(Signature.of(workflow).schema())


@pytest.mark.parametrize("name", TYPES)
def test_no_value_that_a_host_takes_is_refused(name: str) -> None:
    types = types_of(TYPES[name])
    assert ("x" in types) == (name != "any")
    codec = Codec.of(TYPES[name])
    refused = 0
    for value in VALUES:
        try:
            codec.decode(msgspec.json.encode(value))
        except WeftError:
            refused += not is_of_type(value, types.get("x", ["null"]), is_word=False)
            continue
        assert name == "any" or is_of_type(value, types["x"], is_word=False), value
    assert name == "any" or refused > 5


@pytest.mark.parametrize(
    ("word", "types", "fits"),
    [
        ("5", ["integer"], True),
        ("many", ["integer"], False),
        ("many", ["string"], True),
        ("5", ["string"], True),
        ("2.0", ["integer"], True),
        ("2.5", ["integer"], False),
        ("null", ["integer", "null"], True),
        ("[1", ["array"], False),
        ("\ud800", ["integer"], False),
    ],
)
def test_a_word_has_the_type_that_it_can_be_read_as(word: str, types: list[str], fits: bool) -> None:
    assert is_of_type(word, types, is_word=True) is fits


def test_an_argument_may_have_the_type_of_any_version() -> None:
    one = {"properties": {"n": {"type": "integer"}, "m": {"type": "string"}}}
    other = {"properties": {"n": {"type": "string"}, "m": {}}}
    assert either_type([one, other]) == {"n": ["integer", "string"]}


def test_a_schema_that_refers_to_itself_may_have_any_type() -> None:
    schema = {"properties": {"n": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert argument_types(schema) == {}
