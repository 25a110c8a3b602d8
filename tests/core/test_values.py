"""What is stored comes back, or is refused at once with the field and the reason."""

import enum
import json
import math
import re
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, computed_field

from weft.core import values
from weft.core.values import (
    DEPTH_MAX,
    VALUE_BYTES_MAX,
    Ref,
    blob_ref,
    decode,
    digest,
    encode,
    is_ref,
    parse_ref,
    preview_text,
    seal,
    unseal,
)
from weft.errors import BadValue, Corrupt, LimitExceeded

SHA = "a" * 64


class Session:
    pass


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Receipt:
    id: str
    extra: Any = None


class Line(msgspec.Struct):
    sku: str
    extra: Any = None


class Order(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="allow")
    id: str
    extra: Any = Field(default=None, alias="Extra")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def upper(self) -> str:
        return self.id.upper()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        ({"b": 1, "a": [1.5, True, None, "é"]}, '{"b":1,"a":[1.5,true,null,"é"]}'),
        (Receipt("r-1", Line("soup")), '{"id":"r-1","extra":{"sku":"soup","extra":null}}'),
        (Order(id="o-1", Extra=3), '{"id":"o-1","extra":3}'),
        (Point(1, 2), "[1,2]"),
        ([Colour.RED, date(2024, 5, 6), timedelta(seconds=90)], '["red","2024-05-06","PT90S"]'),
        ([datetime(2024, 5, 6, tzinfo=UTC), UUID(int=5), Decimal("1.10")], None),
        ({1: "a", 2: "b"}, '{"1":"a","2":"b"}'),
        ({Colour.RED: 1}, '{"red":1}'),
        ([OrderedDict(b=1, a=2), defaultdict(int, c=3)], '[{"b":1,"a":2},{"c":3}]'),
        (2**70, str(2**70)),
        (-(2**70), str(-(2**70))),
        ("\\u0000", '"\\\\u0000"'),
        ("null", '"null"'),
        (msgspec.Raw(b'{"a":1}'), '{"a":1}'),
        (b"ab", '"YWI="'),
    ],
)
def test_builtins_dataclasses_models_and_structs_are_json(value: object, raw: str | None) -> None:
    encoded = encode(value)

    json.loads(encoded)
    if raw is not None:
        assert encoded.decode() == raw


def test_subclasses_of_builtins_are_stored_as_what_they_are() -> None:
    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "another text"

    class Count(int):
        pass

    class Share(float):
        pass

    assert encode([Name("a"), Count(3), Share(1.5)]) == b'["a",3,1.5]'


def test_extra_fields_of_a_model_are_kept() -> None:
    assert decode(encode(Order.model_validate({"id": "o", "more": [1]}))) == {"id": "o", "extra": None, "more": [1]}


@pytest.mark.parametrize(
    ("value", "path", "kind"),
    [
        ({"receipt": {"session": Session()}}, "receipt.session", "a Session"),
        (Session(), "", "a Session"),
        ([Receipt("r", Line("s", Session()))], "[0].extra.extra", "a Session"),
        (Order(id="o", Extra=Session()), "extra", "a Session"),
        ({"odd key": {"n": 1j}}, "['odd key'].n", "a complex"),
        ({"xs": {1, 2}}, "xs", "a set"),
        ([frozenset({1})], "[0]", "a frozenset"),
        (Receipt("r", {"a"}), "extra", "a set"),
        (Line("s", {"a"}), "extra", "a set"),
        (Order(id="o", Extra={"a"}), "extra", "a set"),
        (Order.model_validate({"id": "o", "more": {"a"}}), "more", "a set"),
        ([set[int]()], "[0]", "a set"),
        ({"a": 1}.keys(), "", "a dict_keys"),
        ([1.0, math.nan], "[1]", "the number nan"),
        ({"a": {"b": math.inf}}, "a.b", "the number inf"),
        (Receipt("r", -math.inf), "extra", "the number -inf"),
        (Order(id="o", Extra=math.nan), "extra", "the number nan"),
        ({"x": None, "y": math.nan}, "y", "the number nan"),
        (math.nan, "", "the number nan"),
        ({"a": ["x\0y"]}, "a[0]", "a string with a NUL character"),
        ({"a\0": 1}, "", "a dict with a NUL character in a key"),
        (Order(id="o", Extra=b"\0"), "extra", "a string with a NUL character"),
        (["\ud800"], "[0]", "a string with a lone surrogate"),
        ({"\ud800": 1}, "", "a dict with the key '\\ud800'"),
        ({"a": {(1, 2): 3}}, "a", "a dict with the key (1, 2)"),
        ({None: 1}, "", "a dict with the key None"),
        ({True: 1}, "", "a dict with the key True"),
        ({1: "a", "1": "b"}, "", "a dict with the keys 1 and '1'"),
        ([{Colour.RED: 1, "red": 2}], "[0]", "a dict with the keys <Colour.RED: 'red'> and 'red'"),
        ([1 << 20_000], "[0]", "an integer of more than 4300 digits"),
        ({1 << 20_000: 1}, "", "a dict with the key <int>"),
        ([msgspec.Raw(b"nonsense")], "[0]", "a Raw that is not JSON"),
        ([msgspec.Raw(b"")], "[0]", "a Raw that is not JSON"),
        ((n for n in [1]), "", "a generator"),
    ],
)
def test_what_would_not_come_back_is_refused_by_field_and_kind(value: object, path: str, kind: str) -> None:
    with pytest.raises(BadValue) as refused:
        encode(value, what="charge returned")

    field_text = f" (field `{path}`)" if path else ""
    assert refused.value.message == f"charge returned {kind}{field_text}, which cannot be stored."
    assert refused.value.code == "value.not_json"
    assert refused.value.hint
    assert refused.value.context["path"] == path


def test_the_refusal_of_a_foreign_object_says_what_steps_take() -> None:
    with pytest.raises(BadValue) as refused:
        encode({"receipt": {"session": Session()}}, what="charge returned")

    assert str(refused.value) == (
        "charge returned a Session (field `receipt.session`), which cannot be stored. Steps take and return builtins, "
        "dataclasses, pydantic or msgspec types. Pass an id instead."
    )


def test_a_dataclass_field_that_was_never_set_harms_nobody() -> None:
    receipt = Receipt("r")
    del receipt.extra

    assert encode([receipt]) == b'[{"id":"r"}]'


def test_a_value_whose_own_code_fails_is_refused_with_that_reason() -> None:
    class Broken(BaseModel):
        n: int = 1

        def model_dump(self, **_: Any) -> dict[str, Any]:
            raise RuntimeError("no dump today")

    with pytest.raises(BadValue, match=re.escape("a Broken that cannot be encoded (no dump today) (field `a`)")):
        encode({"a": Broken()})


@pytest.mark.parametrize("digits", [4299, 4300])
def test_integers_of_up_to_4300_digits_come_back(digits: int) -> None:
    number = int("9" * digits)

    assert decode(encode(number)) == number


def test_an_integer_of_4301_digits_is_refused() -> None:
    with pytest.raises(BadValue, match="4300 digits"):
        encode(10**4300)


@pytest.mark.parametrize("levels", [DEPTH_MAX - 1, DEPTH_MAX])
def test_a_hundred_levels_are_stored(levels: int) -> None:
    assert decode(encode(nested(levels))) == nested(levels)


@pytest.mark.parametrize("inner", [date(2024, 5, 6), 1.5, Session], ids=["date", "number", "class"])
def test_a_leaf_is_no_level(inner: object) -> None:
    value = inner
    for _ in range(DEPTH_MAX):
        value = {"a": value, "b": None}

    if inner is Session:
        with pytest.raises(BadValue):
            encode(value)
    else:
        encode(value)


@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 500, 100_000])
def test_more_levels_are_refused(levels: int) -> None:
    with pytest.raises(LimitExceeded, match="got a value nested deeper than 100 levels"):
        encode(nested(levels))


def test_a_deep_value_of_models_and_dataclasses_is_refused_too() -> None:
    value: Any = 1
    for _ in range(51):
        value = Receipt("r", Order(id="o", Extra=value))

    with pytest.raises(LimitExceeded):
        encode(value)


def test_a_value_that_contains_itself_is_refused_quickly() -> None:
    value: list[Any] = []
    value += [value, value]

    with pytest.raises(LimitExceeded):
        encode(value)


@pytest.mark.parametrize("size", [VALUE_BYTES_MAX - 1, VALUE_BYTES_MAX])
def test_a_value_of_16_mib_is_stored(size: int) -> None:
    assert len(encode("x" * (size - 2))) == size


def test_one_byte_more_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="charge returned a value of 16,777,217 bytes; the limit is 16,777,216"):
        encode("x" * (VALUE_BYTES_MAX - 1), what="charge returned")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_every_json_value_comes_back_as_it_was(value: object) -> None:
    raw = encode(value)

    assert decode(raw) == value
    assert json.loads(raw) == value
    assert encode(decode(raw)) == raw


hostile = st.recursive(
    st.none() | st.floats() | st.text() | st.integers() | st.binary() | st.just(Session()) | st.sets(st.integers()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.none() | st.floats(), inner, max_size=3)
        | st.builds(Receipt, st.text(), inner)
        | st.builds(Line, st.text(), inner)
        | inner.map(lambda extra: Order(id="o", Extra=extra))
    ),
    max_leaves=8,
)


@given(hostile)
def test_any_value_is_stored_faithfully_or_refused_with_a_type(value: object) -> None:
    try:
        raw = encode(value)
    except (BadValue, LimitExceeded) as refused:
        assert str(refused).isprintable()  # noqa: PT017  # either outcome is right
        return
    again = decode(raw)
    assert encode(again) == raw
    assert b"\\u0000" not in raw.replace(b"\\\\", b"")


def test_the_quick_look_and_the_slow_look_agree_on_nan_beside_null() -> None:
    assert encode({"a": None, "b": 1.5}) == b'{"a":null,"b":1.5}'
    assert encode([None, Receipt("r", 0.5)]) == b'[null,{"id":"r","extra":0.5}]'


def test_a_digest_names_the_bytes() -> None:
    assert digest(b"{}") == digest(b"{}") != digest(b"[]")
    assert re.fullmatch("[0-9a-f]{24}", digest(b"{}"))
    assert digest(b'{"order_id":"o-1"}') == "acc1ad7baa6a47bd37a3c3f2"


def test_a_reference_is_told_from_every_sealed_value() -> None:
    raw = blob_ref(SHA, 70_000)

    assert raw == b'{"$weft":"blob","at":"cas://sha256:%b","size":70000}' % SHA.encode()
    assert is_ref(raw)
    assert parse_ref(raw) == Ref(SHA, 70_000)
    assert not is_ref(seal(raw))
    assert unseal(seal(raw)) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b'{"$weft":"blob"}',
        b'{"$weft":"blob","at":"file:///etc/passwd","size":1}',
        b'{"$weft":"blob","at":"cas://sha256:aa","size":-1}',
        b'{"$weft":"blob","at":"cas://sha256:aa","size":"1"}',
        b'{"$weft":"lit","at":"cas://sha256:aa","size":1}',
        b'{"$weft":"blob","at":"cas://sha256:aa","size":1',
    ],
)
def test_a_broken_reference_is_corruption(raw: bytes) -> None:
    with pytest.raises(Corrupt):
        parse_ref(raw)


@given(json_values | st.sampled_from([{"$weft": "blob"}, {"$weft": "lit", "v": 1}, {"$weft": {"$weft": 1}}]))
def test_sealing_is_undone_and_leaves_no_reference(value: object) -> None:
    raw = encode(value)
    sealed = seal(raw)

    assert unseal(sealed) == raw
    assert not is_ref(sealed)
    json.loads(sealed)


def test_sealing_twice_is_undone_twice() -> None:
    raw = encode({"$weft": "lit", "v": 1})

    assert unseal(unseal(seal(seal(raw)))) == raw


def test_sealing_what_needs_none_copies_nothing() -> None:
    raw = encode({"a": "x" * 1000})

    assert seal(raw) is raw
    assert unseal(raw) is raw


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("o-1", '"o-1"'),
        (17, "17"),
        (None, "null"),
        (Session(), "<Session>"),
        (1 << 20_000, "<int>"),
        ("\ud800", "<str>"),
    ],
    ids=["text", "number", "null", "object", "huge", "surrogate"],
)
def test_a_value_is_shown_as_json_and_never_raises(value: object, text: str) -> None:
    assert preview_text(value) == text


def test_a_long_value_is_shown_short() -> None:
    assert len(preview_text("x" * 1000)) == 60
    assert len(preview_text("x" * 58)) == 60
    assert preview_text("x" * 58) == '"' + "x" * 58 + '"'


def test_limits_are_what_the_documents_say() -> None:
    assert values.INLINE_BYTES_MAX == 32 * 1024
    assert VALUE_BYTES_MAX == 16 * 1024 * 1024
    assert DEPTH_MAX == 100


@dataclass
class Tree:
    name: str
    kids: "list[Tree]" = field(default_factory=list)


def test_a_recursive_dataclass_is_stored() -> None:
    assert encode(Tree("a", [Tree("b")])) == b'{"name":"a","kids":[{"name":"b","kids":[]}]}'
