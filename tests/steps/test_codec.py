"""A value of a declared type crosses as JSON and is the same on the other side; another value is refused in words."""

import enum
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    LiteralString,
    NamedTuple,
    NewType,
    NoReturn,
    NotRequired,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import jsonschema_rs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

from weft.core.values import VALUE_BYTES_MAX
from weft.errors import BadValue, LimitExceeded, UsageError
from weft.steps.codec import Codec

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    RED = "red"
    TWO = 2


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    label: str = ""


class Options(TypedDict):
    width: int
    note: NotRequired[str]


@dataclass
class Receipt:
    id: str
    cents: int
    at: datetime | None = None


@dataclass
class Refund:
    refund_id: str


@dataclass
class Tree:
    name: str
    kids: "list[Tree]" = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    content: T


class Line(msgspec.Struct):
    sku: str
    count: int = 1


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    tricks: list[str]


class Item(BaseModel):
    sku: str
    price: Decimal = Decimal(0)


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    items: list[Item]
    placed: datetime | None = None
    customer: str = Field(default="", alias="customerName", serialization_alias="Customer")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def size(self) -> int:
        return len(self.items)


class Tags(RootModel[list[str]]):
    pass


@pydantic.dataclasses.dataclass
class Checked:
    percent: Annotated[int, Field(ge=0, le=100)]


@dataclass
class Parcel:
    order: Order
    lines: list[Line]
    weight: timedelta = timedelta(0)


class Shipment(TypedDict):
    order: Order
    parcel: Parcel


class Session:
    pass


UserId = NewType("UserId", str)

CROSSING: list[tuple[Any, Any]] = [
    (str, "é"),
    (int, 2**70),
    (float, 1.5),
    (bool, True),
    (None, None),
    (bytes, b"\x00\xff"),
    (Any, {"a": [1, None, 1.5, "x", True]}),
    (object, [1]),
    (list[int], [1, 2]),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str], (1, "a")),
    (dict[str, list[int]], {"a": [1]}),
    (dict[int, str], {1: "a"}),
    (dict[Colour, int], {Colour.RED: 1}),
    (Sequence[int], [1]),
    (Mapping[str, int], {"a": 1}),
    (int | None, None),
    (int | str | list[int] | None, [1]),
    (datetime | str, "soon"),
    (datetime | str, datetime(2024, 5, 6, tzinfo=UTC)),
    (Literal["a", "b", 3], "b"),
    (Annotated[int, "a note"], 3),
    (Annotated[int, ["unhashable"]], 3),
    (LiteralString, "x"),
    (UserId, UserId("u")),
    (datetime, datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)),
    (datetime, datetime(2024, 5, 6)),  # noqa: DTZ001  # naive ones are stored as they are
    (date, date(2024, 5, 6)),
    (time, time(7, 8)),
    (timedelta, timedelta(days=-1, microseconds=1)),
    (UUID, UUID(int=5)),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.RED),
    (Mixed, Mixed.TWO),
    (Level, Level.LOW),
    (Point, Point(1, "a")),
    (Options, {"width": 3}),
    (Options, {"width": 3, "note": "x"}),
    (Receipt, Receipt("r", 4200, datetime(2024, 5, 6, tzinfo=UTC))),
    (Receipt | None, Receipt("r", 1)),
    (Receipt | Refund, Refund("x")),
    (list[Receipt | Refund], [Refund("x"), Receipt("r", 1)]),
    (Tree, Tree("a", [Tree("b", [Tree("c")])])),
    (Box[Receipt], Box(Receipt("r", 1))),
    (Line, Line("soup", 2)),
    (Cat | Dog, Dog(["sit"])),
    (Item, Item(sku="s", price=Decimal("1.10"))),
    (list[Item], [Item(sku="s")]),
    (dict[str, Item | None], {"a": Item(sku="s"), "b": None}),
    (Item | Receipt, Item(sku="s")),
    (Order, Order(items=[Item(sku="s")], placed=datetime(2024, 5, 6, tzinfo=UTC), customerName="J")),
    (Tags, Tags(["a"])),
    (Checked, Checked(percent=50)),
    (Annotated[int, Field(gt=3)], 4),
    (Parcel, Parcel(Order(items=[]), [Line("a")], timedelta(hours=1))),
    (Shipment, {"order": Order(items=[]), "parcel": Parcel(Order(items=[]), [])}),
    (list[Shipment], [{"order": Order(items=[]), "parcel": Parcel(Order(items=[]), [])}]),
    (Path, Path("a/b")),
]


@pytest.mark.parametrize(("type_", "value"), CROSSING, ids=lambda value: re.sub(r"\W+", "_", str(value))[:40])
def test_a_value_of_its_type_is_the_same_on_the_other_side(type_: Any, value: Any) -> None:
    codec = Codec.of(type_)

    raw = codec.encode(value, what="charge returned")
    back = codec.decode(raw)

    assert back == value
    assert type(back) is type(value)
    assert codec.encode(back, what="again") == raw


@pytest.mark.parametrize(("type_", "value"), CROSSING, ids=lambda value: re.sub(r"\W+", "_", str(value))[:40])
def test_the_schema_accepts_what_the_codec_writes(type_: Any, value: Any) -> None:
    codec = Codec.of(type_)
    schema = codec.schema()

    jsonschema_rs.meta.validate(schema)
    if type_ not in (Order, Parcel, Shipment, list[Shipment]):  # outside, a field with an alias goes by its alias
        jsonschema_rs.validate(schema, msgspec.json.decode(codec.encode(value)))


def test_every_reference_in_a_schema_is_found_in_it() -> None:
    schema = Codec.of(list[Shipment]).schema()

    names = set(re.findall(r"#/\$defs/([\w.]+)", msgspec.json.encode(schema).decode()))
    defs = schema["$defs"]
    assert isinstance(defs, dict)
    assert names == set(defs)
    assert "Item" in names


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        (int, "x", "charge returned a string; it must be an integer."),
        (int, "17", "charge returned a string; it must be an integer."),
        (int, 1.0, "charge returned a number; it must be an integer."),
        (int, True, "charge returned a boolean; it must be an integer."),
        (bool, 1, "charge returned an integer; it must be a boolean."),
        (str, None, "charge returned null; it must be a string."),
        (None, 3, "charge returned an integer; it must be null."),
        (str | None, 3, "charge returned an integer; it must be a string or null."),
        (int | str | None, [], "charge returned a list; it must be an integer, a string or null."),
        (Receipt, Receipt("r", "x"), "charge returned a string (field `cents`); it must be an integer."),  # type: ignore[arg-type]
        (list[Receipt], [Receipt("r", 1), 3], "charge returned an integer (field `[1]`); it must be an object."),
        (Receipt, {"id": "r"}, "charge returned a value that is not valid: Object missing required field `cents`."),
        (dict[str, int], {"a": "x"}, "charge returned a string (field `[…]`); it must be an integer."),
        (Literal["a"], "b", "charge returned a value that is not valid: Invalid enum value 'b'."),
        (Colour, "green", "charge returned a value that is not valid: Invalid enum value 'green'."),
        (datetime, "soon", "charge returned a value that is not valid: Invalid RFC3339 encoded datetime."),
        (datetime, 3, "charge returned an integer; it must be a date and time (ISO 8601)."),
        (Item, {"sku": 3}, "charge returned an integer (field `sku`); it must be a string."),
        (Item, {}, "charge returned a value that is not valid (field `sku`): field required."),
        (Item, [], "charge returned a list; it must be an object."),
        (list[Item], [Item(sku="s"), 3], "charge returned an integer (field `[1]`); it must be an object."),
        (Item | Receipt, 3, "charge returned an integer; it must be an object."),
        (
            Checked,
            {"percent": 101},
            "charge returned an integer (field `percent`); it must be less than or equal to 100.",
        ),
        (Annotated[int, Field(gt=3)], 3, "charge returned an integer; it must be greater than 3."),
        (Annotated[int, msgspec.Meta(ge=3)], 2, "charge returned a value that is not valid: Expected `int` >= 3."),
        (
            Parcel,
            {"order": {"items": [{"sku": 3}]}, "lines": []},
            "charge returned an integer (field `order.items[0].sku`); it must be a string.",
        ),
    ],
    ids=lambda value: re.sub(r"\W+", "_", str(value))[:40],
)
def test_a_value_of_another_type_is_refused_by_field_and_kind(type_: Any, value: Any, message: str) -> None:
    with pytest.raises(BadValue) as refused:
        Codec.of(type_).encode(value, what="charge returned")

    assert refused.value.message == message
    assert refused.value.code == "value.wrong_type"


@pytest.mark.parametrize("type_", [Any, Item, Receipt, list[Item]])
def test_what_is_not_json_is_refused_before_its_type_is_looked_at(type_: Any) -> None:
    with pytest.raises(BadValue) as refused:
        Codec.of(type_).encode({"sku": {1, 2}}, what="charge returned")

    assert refused.value.code == "value.not_json"
    assert "a set (field `sku`)" in refused.value.message


def test_a_set_inside_a_model_is_refused_even_though_pydantic_could_write_it() -> None:
    class Labels(BaseModel):
        names: set[str]

    with pytest.raises(BadValue, match=re.escape("a set (field `names`)")):
        Codec.of(Labels).encode(Labels(names={"b", "a"}))


def test_a_nan_inside_a_model_is_refused() -> None:
    class Measure(BaseModel):
        value: float

    with pytest.raises(BadValue, match=re.escape("the number nan (field `value`)")):
        Codec.of(Measure).encode(Measure(value=float("nan")))


def test_bytes_that_pydantic_cannot_write_are_refused_and_not_altered() -> None:
    class Attachment(BaseModel):
        body: bytes

    codec = Codec.of(Attachment)
    assert codec.decode(codec.encode(Attachment(body=b"plain"))) == Attachment(body=b"plain")
    with pytest.raises(BadValue, match="cannot be encoded") as refused:
        codec.encode(Attachment(body=b"\xff"), what="charge returned")
    assert refused.value.code == "value.not_json"


def test_a_foreign_object_in_the_place_of_a_model_is_refused() -> None:
    with pytest.raises(BadValue):
        Codec.of(Item).encode(Session(), what="charge returned")


def test_an_integer_is_a_number() -> None:
    assert repr(Codec.of(float).decode(Codec.of(float).encode(3))) == "3.0"


def test_a_parameter_without_annotation_takes_any_json() -> None:
    assert Codec.of(inspect.Parameter.empty) is Codec.of(Any)
    assert Codec.of(NoReturn).decode(b'{"a":1}') == {"a": 1}


def test_a_codec_is_made_once_per_type() -> None:
    assert Codec.of(list[Receipt]) is Codec.of(list[Receipt])
    assert Codec.of(Literal[1]) is not Codec.of(Literal[True])


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (Session, "Session"),
        (list[Session | None], "Session"),
        (dict[str, Box[Session]], "Session"),
        (Line | Receipt, "Line"),
    ],
)
def test_a_type_that_cannot_be_stored_is_refused_when_it_is_declared(type_: Any, name: str) -> None:
    with pytest.raises(UsageError, match="is not a type that can be stored") as refused:
        Codec.of(type_)

    assert name in refused.value.message
    assert refused.value.code == "value.not_json"


def test_a_model_is_read_by_field_name_and_by_alias() -> None:
    codec = Codec.of(Order)

    assert codec.decode(b'{"items":[],"customer":"J"}') == codec.decode(b'{"items":[],"customerName":"J"}')


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nope", b"NaN", b"-Infinity", b'{"sku":"s","price":NaN}', b'{"id":"r","cents":1}x', b"\xff"]
)
@pytest.mark.parametrize("type_", [Receipt, Item, Any])
def test_bytes_that_are_no_json_are_refused(type_: Any, raw: bytes) -> None:
    with pytest.raises(BadValue):
        Codec.of(type_).decode(raw)


def test_a_validator_that_raises_refuses_with_its_own_words() -> None:
    @dataclass
    class Positive:
        n: int

        def __post_init__(self) -> None:
            if self.n < 0:
                raise ValueError("n is negative.")

    with pytest.raises(BadValue, match="is not valid: n is negative"):
        Codec.of(Positive).decode(b'{"n":-1}')


def test_a_class_that_fails_in_any_other_way_is_refused_too() -> None:
    @dataclass
    class Odd:
        n: int

        def __post_init__(self) -> None:
            raise KeyError("lost")

    with pytest.raises(BadValue, match="lost"):
        Codec.of(Odd).decode(b'{"n":1}')


@pytest.mark.parametrize("type_", [str, Any])
def test_the_size_limit_holds_for_typed_values(type_: Any) -> None:
    codec = Codec.of(type_)

    assert len(codec.encode("x" * (VALUE_BYTES_MAX - 2))) == VALUE_BYTES_MAX
    with pytest.raises(LimitExceeded):
        codec.encode("x" * (VALUE_BYTES_MAX - 1), what="charge returned")


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
receipts = st.builds(Receipt, text, st.integers(), st.none() | st.datetimes(timezones=st.just(UTC)))
trees = st.recursive(
    st.builds(Tree, text), lambda inner: st.builds(Tree, text, st.lists(inner, max_size=3)), max_leaves=8
)
items = st.builds(lambda sku, cents: Item(sku=sku, price=Decimal(cents) / 100), text, st.integers(-(10**9), 10**9))
orders = st.builds(lambda found, name: Order(items=found, customerName=name), st.lists(items, max_size=3), text)


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (Receipt, receipts),
        (list[Receipt | Refund], st.lists(receipts | st.builds(Refund, text), max_size=4)),
        (Tree, trees),
        (Order, orders),
        (Parcel, st.builds(Parcel, orders, st.lists(st.builds(Line, text, st.integers())), st.timedeltas())),
        (dict[str, tuple[int, float] | None], st.dictionaries(
            text, st.none() | st.tuples(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))),
        (tuple[Colour, UUID, Decimal, date], st.tuples(
            st.sampled_from(Colour), st.uuids(), st.decimals(allow_nan=False, allow_infinity=False), st.dates())),
    ],
    ids=["dataclass", "union", "tree", "model", "struct-in-dataclass", "dict", "tuple"],
)  # fmt: skip
def test_any_value_of_a_type_comes_back(type_: Any, found: st.SearchStrategy[Any]) -> None:
    codec = Codec.of(type_)

    @given(found)
    def comes_back(value: Any) -> None:
        assert codec.decode(codec.encode(value)) == value

    comes_back()


names = st.sampled_from(["id", "cents", "sku", "items", "name", "kids", "type"]) | st.text(max_size=2)
some_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([type_ for type_, _ in CROSSING]), some_json)
def test_any_json_is_read_or_refused_and_what_is_read_is_stable(type_: Any, value: Any) -> None:
    codec = Codec.of(type_)
    try:
        read = codec.decode(json.dumps(value).encode())
    except BadValue as refused:
        assert refused.code == "value.wrong_type"  # noqa: PT017  # either outcome is right
        return
    try:
        raw = codec.encode(read)
    except BadValue as refused:
        assert refused.code == "value.not_json"  # noqa: PT017  # a set, which is read from JSON but not written
        return
    assert codec.decode(raw) == read


def test_pydantic_is_not_imported_by_programs_that_do_not_use_it() -> None:
    program = (
        "import sys, dataclasses, weft.steps.signature, weft.steps.failures, weft.core.durations\n"
        "from weft.steps.codec import Codec\n"
        "@dataclasses.dataclass\n"
        "class A: x: int\n"
        "Codec.of(list[A | None]).encode([A(1)])\n"
        "assert 'pydantic' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True)
