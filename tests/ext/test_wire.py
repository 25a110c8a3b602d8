"""Spans as collectors take them: what the real protobufs read is what was encoded."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from weft.ext.otel.wire import (
    Attributes,
    encode_attributes,
    encode_links,
    encode_name,
    encode_parent,
    encode_request,
    encode_span,
    encode_status,
    encode_text_attribute,
    encode_trace,
    varint,
)

NUMBERS = st.integers(0, 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS | st.integers(-(2**63), 2**63 - 1)), max_size=5).map(tuple)


def read(pairs: object) -> list[tuple[str, str | int]]:
    return [(one.key, getattr(one.value, one.value.WhichOneof("value"))) for one in pairs]  # type: ignore[attr-defined]


@given(TEXTS, st.tuples(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1)), NUMBERS, PAIRS, st.none() | TEXTS)
def test_a_span_is_read_as_it_was_encoded(
    name: str, ids: tuple[int, int], start: int, attributes: Attributes, error: str | None
) -> None:
    own, parent = ids
    ending = encode_attributes(attributes) + (encode_status(error) if error is not None else b"")
    ending += encode_links([(7, 9, attributes)])
    span = encode_span(
        encode_trace(5) + (encode_parent(parent) if parent else b""),
        own,
        start,
        start + 3,
        encode_name(name) + b"\x30\x02" + ending,
    )

    request = ExportTraceServiceRequest.FromString(
        encode_request({"service.name": "shop", "process.pid": 3, "ok": True}, ("weft", "1"), [span, span])
    )

    (resource,) = request.resource_spans
    assert read(resource.resource.attributes) == [("service.name", "shop"), ("process.pid", 3), ("ok", "True")]
    (scope,) = resource.scope_spans
    assert (scope.scope.name, scope.scope.version, len(scope.spans)) == ("weft", "1", 2)
    found = scope.spans[1]
    assert (found.name, found.kind) == (name, 2)
    assert (int.from_bytes(found.trace_id), int.from_bytes(found.span_id)) == (5, own)
    assert found.parent_span_id == (parent.to_bytes(8) if parent else b"")
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (start, start + 3)
    assert read(found.attributes) == list(attributes)
    assert (found.status.code, found.status.message) == ((0, "") if error is None else (2, error))
    (link,) = found.links
    assert (int.from_bytes(link.trace_id), int.from_bytes(link.span_id)) == (7, 9)
    assert read(link.attributes) == list(attributes)


@given(TEXTS, TEXTS)
def test_one_text_is_encoded_as_among_others(key: str, text: str) -> None:
    assert encode_text_attribute(key, text) == encode_attributes(((key, text),))


def test_numbers_are_encoded_in_groups_of_seven_bits() -> None:
    assert [varint(number) for number in (0, 127, 128, 300)] == [b"\x00", b"\x7f", b"\x80\x01", b"\xac\x02"]


def test_text_that_no_encoding_has_is_replaced() -> None:
    assert encode_name("\ud800") == b"\x2a\x01?"
