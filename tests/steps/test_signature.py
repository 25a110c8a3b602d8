"""A call becomes one JSON object of the arguments given, checked before anything starts, and comes back typed."""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from weft.core.values import DEPTH_MAX, VALUE_BYTES_MAX
from weft.errors import BadValue, LimitExceeded, UsageError
from weft.runtime.input_differences import argument_differences
from weft.steps.signature import Signature

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForCheckers


class Context:
    pass


class Session:
    pass


@dataclass
class Receipt:
    id: str
    cents: int


class Item(BaseModel):
    sku: str


def charge(order_id: str, cents: int = 100, *, note: str | None = None) -> Receipt:
    return Receipt(order_id, cents)


def mixed(item: Item, receipts: list[Receipt], when: datetime | str = "now", extra=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return item, receipts, when, extra


CHARGE = Signature.of(charge)
MIXED = Signature.of(mixed)


@pytest.mark.parametrize(
    ("args", "kwargs", "raw"),
    [
        (("o-1",), {}, b'{"order_id":"o-1"}'),
        (("o-1", 5), {}, b'{"order_id":"o-1","cents":5}'),
        (("o-1",), {"note": "x"}, b'{"order_id":"o-1","note":"x"}'),
        ((), {"note": None, "cents": 5, "order_id": "o-1"}, b'{"order_id":"o-1","cents":5,"note":null}'),
    ],
)
def test_the_input_is_what_was_given_in_the_order_of_the_parameters(
    args: tuple[Any, ...], kwargs: dict[str, Any], raw: bytes
) -> None:
    assert CHARGE.bind(args, kwargs, what="charge") == raw
    assert CHARGE.from_mapping(inspect.signature(charge).bind(*args, **kwargs).arguments, what="charge") == raw


def test_defaults_are_left_to_the_function() -> None:
    assert charge(**CHARGE.unpack(b'{"order_id":"o-1"}', what="charge")) == Receipt("o-1", 100)


def test_arguments_come_back_typed() -> None:
    raw = MIXED.bind((Item(sku="s"), [Receipt("r", 1)]), {"extra": (1, 2)}, what="mixed")

    assert raw == b'{"item":{"sku":"s"},"receipts":[{"id":"r","cents":1}],"extra":[1,2]}'
    assert MIXED.unpack(raw, what="mixed") == {"item": Item(sku="s"), "receipts": [Receipt("r", 1)], "extra": [1, 2]}


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((17,), {}, "charge(order_id=17): order_id must be a string, got an integer."),
        (("o", "x"), {}, 'charge(cents="x"): cents must be an integer, got a string.'),
        (("o",), {"note": 3}, "charge(note=3): note must be a string or null, got an integer."),
        ((), {}, "charge() needs order_id."),
        ((), {"cents": 3}, "charge() needs order_id."),
        (("o", 1, 2), {}, "charge() takes 2 positional arguments, got 3."),
        (("o",), {"order_id": "p"}, "charge() got order_id twice."),
        (
            ("o",),
            {"cent": 3},
            'charge() has no parameter "cent". Did you mean "cents"? It takes: order_id, cents, note.',
        ),
        (("o",), {"zebra": 3}, 'charge() has no parameter "zebra". It takes: order_id, cents, note.'),
    ],
)
def test_a_wrong_call_is_refused_by_function_and_parameter(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadValue) as refused:
        CHARGE.bind(args, kwargs, what="charge")

    assert str(refused.value) == f"{message} Nothing was started."
    assert refused.value.code == "value.wrong_type"
    with pytest.raises(TypeError):
        _call_with_python(args, kwargs)


def _call_with_python(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What Python does itself with a call it cannot bind; types are Weft's concern alone."""
    bound = inspect.signature(charge).bind(*args, **kwargs).arguments
    wanted = {"order_id": str, "cents": int, "note": str | None}
    for name, value in bound.items():
        if not isinstance(value, wanted[name]):
            raise TypeError(name)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (({"sku": 3}, []), 'mixed(item={"sku":3}): item.sku must be a string, got an integer.'),
        (({}, []), "mixed(item={}): item.sku: field required."),
        ((3, []), "mixed(item=3): item must be an object, got an integer."),
        (
            ({"sku": "s"}, [{"id": "r", "cents": "x"}]),
            'mixed(receipts=[{"id":"r","cents":"x"}]): receipts[0].cents must be an integer, got a string.',
        ),
        (({"sku": "s"}, [], 3), "mixed(when=3): when must be a datetime or a string, got an integer."),
    ],
)
def test_a_wrong_part_of_an_argument_is_named_by_its_path(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadValue) as refused:
        MIXED.bind(args, {}, what="mixed")

    assert refused.value.message == message


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((Item(sku="s"), [], "now", {"s": Session()}), {}, "mixed() got a Session (field `extra.s`)"),
        ((Session(), []), {}, "mixed(item={}): item.sku: field required"),
        ((Item(sku="s"), {1, 2}), {}, "mixed() got a set (field `receipts`)"),
        ((Item(sku="s"), []), {"extra": float("nan")}, "mixed() got the number nan (field `extra`)"),
    ],
)
def test_an_argument_that_is_not_json_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=re.escape(message)):
        MIXED.bind(args, kwargs, what="mixed")


def test_arguments_together_have_one_size_limit() -> None:
    def send(a: str, b: str) -> None: ...

    signature = Signature.of(send)
    frame = len(b'{"a":"","b":""}')
    room = (VALUE_BYTES_MAX - frame) // 2
    odd = (VALUE_BYTES_MAX - frame) % 2

    assert len(signature.bind(("x" * room, "x" * (room + odd)), {}, what="send")) == VALUE_BYTES_MAX
    with pytest.raises(LimitExceeded, match=re.escape("send() got a value of 16,777,217 bytes")):
        signature.bind(("x" * room, "x" * (room + odd + 1)), {}, what="send")


@pytest.mark.parametrize(("levels", "fits"), [(DEPTH_MAX - 2, True), (DEPTH_MAX - 1, True), (DEPTH_MAX, False)])
def test_the_object_of_arguments_is_one_level(levels: int, fits: bool) -> None:
    value: Any = 1
    for _ in range(levels):
        value = [value]

    if fits:
        MIXED.bind((Item(sku="s"), []), {"extra": value}, what="mixed")
    else:
        with pytest.raises(LimitExceeded):
            MIXED.bind((Item(sku="s"), []), {"extra": value}, what="mixed")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{}", "charge() needs order_id. Give order_id a default."),
        (b'{"order_id":"o","gone":1}', 'charge() has no parameter "gone".'),
        (b'{"order_id":1}', "(order_id=1): order_id must be a string, got an integer"),
        (b"[]", "charge(): it must be an object, got a list"),
    ],
)
def test_a_recorded_input_that_no_longer_fits_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(BadValue) as refused:
        CHARGE.unpack(raw, what="charge")

    assert message in str(refused.value)
    assert "Nothing was started" not in str(refused.value)


async def by_type(context: Context, order_id: str) -> None: ...
async def by_name(ctx, order_id: str) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
async def by_text(context: "weft.Context", order_id: str) -> None: ...  # type: ignore[name-defined]  # noqa: F821
async def second(order_id: str, ctx: str = "") -> None: ...
async def without(order_id: str) -> None: ...
async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("fn", "injected", "names"),
    [
        (by_type, True, ["order_id"]),
        (by_name, True, ["order_id"]),
        (by_text, True, ["order_id"]),
        (second, False, ["order_id", "ctx"]),
        (without, False, ["order_id"]),
        (nothing, False, []),
    ],
)
def test_the_context_is_injected_and_no_argument(fn: Callable[..., Any], injected: bool, names: list[str]) -> None:
    signature = Signature.of(fn, context_type=Context)

    assert signature.takes_context is injected
    assert [each.name for each in signature.parameters] == names


def test_a_step_has_no_context_whatever_its_parameters_are_called() -> None:
    def step(ctx: str) -> None: ...

    assert Signature.of(step).bind(("x",), {}, what="step") == b'{"ctx":"x"}'


def positional_only(a: int, /) -> None: ...
def star(*args: int) -> None: ...
def stars(**kwargs: int) -> None: ...


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (positional_only, 'positional_only(a: int): recorded arguments need names. Remove the "/" after a.'),
        (star, "star(*args: int): recorded arguments need names. Take a list instead: args: list[...]."),
        (stars, "stars(**kwargs: int): recorded arguments need names. Take a dict instead: kwargs: dict[str, ...]."),
    ],
)
def test_parameters_without_names_are_refused_at_decoration(fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        Signature.of(fn)

    assert str(refused.value) == message


def test_a_type_that_cannot_be_stored_is_refused_at_decoration() -> None:
    def opens(session: Session) -> None: ...
    def gives() -> Session: ...  # type: ignore[empty-body]

    with pytest.raises(BadValue, match=re.escape("opens(session): Session is not a type that can be stored.")):
        Signature.of(opens)
    with pytest.raises(BadValue, match=re.escape("gives() ->: Session is not a type that can be stored.")):
        Signature.of(gives)


def test_a_hint_that_cannot_be_resolved_means_any_and_harms_no_other() -> None:
    def step(amount: "OnlyForCheckers", count: "int") -> "OnlyForCheckers": ...  # type: ignore[empty-body]

    signature = Signature.of(step)

    assert signature.bind(("anything", 1), {}, what="step") == b'{"amount":"anything","count":1}'
    assert signature.result.type is Any
    with pytest.raises(BadValue, match="count must be an integer"):
        signature.bind((1, "x"), {}, what="step")


def test_partials_and_callables_have_signatures_too() -> None:
    class Doubler:
        def __call__(self, n: int) -> int:
            return 2 * n

    assert Signature.of(Doubler()).bind((3,), {}, what="double") == b'{"n":3}'
    bound = Signature.of(functools.partial(charge, note="x"))
    assert bound.bind(("o",), {}, what="charge") == b'{"order_id":"o"}'
    with pytest.raises(BadValue):
        bound.bind((3,), {}, what="charge")


def test_the_result_is_checked_by_its_annotation() -> None:
    with pytest.raises(BadValue, match=re.escape("charge returned a string; it must be an object.")):
        CHARGE.result.encode("x", what="charge returned")


def test_parameters_say_what_callers_see() -> None:
    assert [(p.name, p.required, p.type) for p in CHARGE.parameters] == [
        ("order_id", True, str),
        ("cents", False, int),
        ("note", False, str | None),
    ]
    assert CHARGE.parameters[1].default == 100


def test_metadata_in_annotated_is_kept_for_those_who_read_it() -> None:
    def step(total: Annotated[int, "a fact"]) -> None: ...

    assert Signature.of(step).parameters[0].type == Annotated[int, "a fact"]


def test_the_schema_describes_the_input() -> None:
    def step(item: Item, receipt: Receipt, late: timedelta = timedelta(hours=1), odd: Any = object) -> None: ...

    schema = Signature.of(step).schema()

    jsonschema_rs.meta.validate(schema)
    check = jsonschema_rs.validator_for(schema)
    assert check.is_valid({"item": {"sku": "s"}, "receipt": {"id": "r", "cents": 1}})
    assert not check.is_valid({"item": {"sku": "s"}})
    assert not check.is_valid({"item": {"sku": "s"}, "receipt": {"id": "r", "cents": "1"}})
    assert not check.is_valid({"item": {"sku": "s"}, "receipt": {"id": "r", "cents": 1}, "more": 1})
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties["late"]["default"] == "PT3600S"
    assert "default" not in properties["odd"]


def test_two_types_of_one_name_are_both_described() -> None:
    first: Any = dataclass(type("Row", (), {"__annotations__": {"a": int}}))
    second_type: Any = dataclass(type("Row", (), {"__annotations__": {"b": str}}))

    def step(x, y) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    step.__annotations__ = {"x": list[first], "y": list[second_type]}
    check = jsonschema_rs.validator_for(Signature.of(step).schema())

    assert check.is_valid({"x": [{"a": 1}], "y": [{"b": "t"}]})
    assert not check.is_valid({"x": [{"b": "t"}], "y": [{"a": 1}]})


@pytest.mark.parametrize(
    ("a", "b", "differences"),
    [
        (b'{"x":1}', b'{"x":1}', {}),
        (b'{"x":1}', b'{"x":1.0}', {}),
        (b'{"order_id":"o-1"}', b'{"order_id":"o-2"}', {"order_id": ("o-1", "o-2")}),
        (b'{"x":1,"y":2}', b'{"x":1}', {}),
        (b'{"x":1}', b'{"x":1,"y":2}', {}),
        (b'{"x":{"a":1}}', b'{"x":{"a":2}}', {"x": ({"a": 1}, {"a": 2})}),
        (b'{"x":1}', b'{"x":true}', {"x": (1, True)}),
    ],
)
def test_inputs_are_compared_where_both_give_an_argument(
    a: bytes, b: bytes, differences: dict[str, tuple[object, object]]
) -> None:
    assert argument_differences(a, b) == differences


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.integers(), st.none() | st.just("n")
)
def test_what_is_bound_is_what_the_function_gets(order_id: str, cents: int, note: str | None) -> None:
    raw = CHARGE.bind((order_id,), {"note": note, "cents": cents}, what="charge")

    assert CHARGE.unpack(raw, what="charge") == {"order_id": order_id, "cents": cents, "note": note}
