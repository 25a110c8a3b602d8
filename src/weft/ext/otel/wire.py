"""Encode spans as OTLP, the bytes that collectors take. Pure.

The encoder of the SDK is made for anything that a program may trace, and takes longer for a span than Weft takes for a
step. The spans of a host differ in little: ids, times, and attributes that repeat. Those are encoded once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

Attributes = tuple[tuple[str, str | int], ...]
LinkParts = tuple[int, int, Attributes]
"""The trace, the span and the attributes of a link."""

_ATTRIBUTE, _LINK_ATTRIBUTE, _RESOURCE_ATTRIBUTE = b"\x4a", b"\x22", b"\x0a"
OWN_ID = b"\x12\x08"
"""Stands before the id of a span."""
START, END = b"\x39", b"\x41"
"""Stand before the times when a span began and ended."""
_OWN = struct.Struct("<8scQcQ")
pack_own = _OWN.pack
"""Encode the id of a span, ``START``, its begin, ``END``, its end."""
_INT64 = (1 << 64) - 1


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SIZES_KEPT = 2_048
"""Longer than nearly all spans are."""
_VARINTS = [_varint(number) for number in range(_SIZES_KEPT)]


def varint(number: int) -> bytes:
    """Encode a number in groups of seven bits."""
    return _VARINTS[number] if number < _SIZES_KEPT else _varint(number)


def length_field(tag: bytes, content: bytes) -> bytes:
    """Encode a field with a length."""
    return tag + varint(len(content)) + content


def encode_attributes(attributes: Attributes, tag: bytes = _ATTRIBUTE) -> bytes:
    """Encode attributes of a span."""
    parts: list[bytes] = []
    for key, value in attributes:
        if isinstance(value, int):
            content = b"\x18" + varint(value & _INT64)
        else:
            text = _text_on_wire(value)
            content = b"\x0a" + varint(len(text)) + text
        name, size = _key_on_wire(key), varint(len(content))
        parts += (tag, varint(len(name) + 1 + len(size) + len(content)), name, b"\x12", size, content)
    return b"".join(parts)


@lru_cache(maxsize=1_024)
def encode_name(name: str) -> bytes:
    """Encode the name of a span."""
    return length_field(b"\x2a", _text_on_wire(name))


def encode_text_attribute(key: str, text: str) -> bytes:
    """Encode one attribute of a span that is a text."""
    name, content = _key_on_wire(key), _text_on_wire(text)
    short = len(name) + len(content) + 4
    if short < 128:  # one byte for each size
        return b"\x4a%c%b\x12%c\x0a%c%b" % (short, name, len(content) + 2, len(content), content)
    size = varint(len(content))
    inner = varint(1 + len(size) + len(content))
    total = varint(len(name) + 2 + len(inner) + len(size) + len(content))
    return b"".join((_ATTRIBUTE, total, name, b"\x12", inner, b"\x0a", size, content))


def encode_trace(trace: int) -> bytes:
    """Encode the trace of a span."""
    return b"\x0a\x10" + trace.to_bytes(16)


def encode_parent(parent: int) -> bytes:
    """Encode the parent of a span. A span without one has no such field."""
    return b"\x22\x08" + parent.to_bytes(8)


def encode_span(ids: bytes, own: int, start: int, end: int, text: bytes) -> bytes:
    """Encode a span: its trace and parent, its own id, its begin and end; and everything else.

    A span that ends before it begins, because the clock was set back, ends at once.
    """
    own_part = pack_own(own.to_bytes(8), START, start, END, max(start, end))
    return b"".join((span_head(len(ids) + len(OWN_ID) + len(text)), ids, OWN_ID, own_part, text))


def span_head(size: int) -> bytes:
    """Return the first bytes of a span in a request, by the size of everything but what ``pack_own`` gives."""
    return b"\x12" + varint(size + _OWN.size)


def encode_status(error: str) -> bytes:
    """Encode the status of a span that failed."""
    return length_field(b"\x7a", length_field(b"\x12", _text_on_wire(error)) + b"\x18\x02")


def encode_links(links: Iterable[LinkParts]) -> bytes:
    """Encode the links of a span."""
    return b"".join(
        length_field(
            b"\x6a",
            b"\x0a\x10" + trace.to_bytes(16) + b"\x12\x08" + span.to_bytes(8)
            + encode_attributes(attributes, _LINK_ATTRIBUTE),
        )
        for trace, span, attributes in links
    )  # fmt: skip


def encode_request(resource: Mapping[str, Any], scope: tuple[str, str], spans: Sequence[bytes]) -> bytes:
    """Encode a request with spans of one process."""
    attributes = tuple((key, value if _is_int(value) else str(value)) for key, value in resource.items())
    head = length_field(b"\x0a", encode_attributes(attributes, _RESOURCE_ATTRIBUTE))
    name, version = scope
    named = length_field(b"\x0a", length_field(b"\x0a", name.encode()) + length_field(b"\x12", version.encode()))
    # One copy of the spans, which may be a megabyte.
    size = len(named) + sum(map(len, spans))
    of_scope = b"\x12" + varint(size)
    return b"".join((b"\x0a", varint(len(head) + len(of_scope) + size), head, of_scope, named, *spans))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@lru_cache(maxsize=1_024)
def _key_on_wire(key: str) -> bytes:
    return length_field(b"\x0a", key.encode())


def _text_on_wire(text: str) -> bytes:
    return text.encode("utf-8", "replace")
