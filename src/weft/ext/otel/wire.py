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
_OWN = struct.Struct("<2s8scQcQ").pack
_INT64 = (1 << 64) - 1


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_VARINTS = [_varint(number) for number in range(2_048)]
"""Longer than nearly all spans are."""


def varint(number: int) -> bytes:
    """Encode a number in groups of seven bits."""
    return _VARINTS[number] if number < 2_048 else _varint(number)


def block(tag: bytes, content: bytes) -> bytes:
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
    return block(b"\x2a", _text_on_wire(name))


def encode_ids(trace: int, parent: int) -> bytes:
    """Encode the trace and the parent of a span, the same for most spans of a run."""
    return b"\x0a\x10" + trace.to_bytes(16) + (b"\x22\x08" + parent.to_bytes(8) if parent else b"")


def encode_span(ids: bytes, own: int, times: tuple[int, int], text: bytes, more: bytes = b"") -> bytes:
    """Encode a span: its trace and parent, its own id, its begin and end; and everything else."""
    start, end = times
    own_part = _OWN(b"\x12\x08", own.to_bytes(8), b"\x39", start, b"\x41", end)
    size = len(ids) + len(own_part) + len(text) + len(more)
    return b"".join((b"\x12", varint(size), ids, own_part, text, more))


def encode_status(error: str) -> bytes:
    """Encode the status of a span that failed."""
    return block(b"\x7a", block(b"\x12", _text_on_wire(error)) + b"\x18\x02")


def encode_links(links: Iterable[LinkParts]) -> bytes:
    """Encode the links of a span."""
    return b"".join(
        block(
            b"\x6a",
            b"\x0a\x10" + trace.to_bytes(16) + b"\x12\x08" + span.to_bytes(8)
            + encode_attributes(attributes, _LINK_ATTRIBUTE),
        )
        for trace, span, attributes in links
    )  # fmt: skip


def encode_request(resource: Mapping[str, Any], scope: tuple[str, str], spans: Sequence[bytes]) -> bytes:
    """Encode a request with spans of one process."""
    attributes = tuple((key, value if _is_int(value) else str(value)) for key, value in resource.items())
    head = block(b"\x0a", encode_attributes(attributes, _RESOURCE_ATTRIBUTE))
    name, version = scope
    named = block(b"\x0a", block(b"\x0a", name.encode()) + block(b"\x12", version.encode()))
    return block(b"\x0a", head + block(b"\x12", named + b"".join(spans)))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@lru_cache(maxsize=1_024)
def _key_on_wire(key: str) -> bytes:
    return block(b"\x0a", key.encode())


def _text_on_wire(text: str) -> bytes:
    return text.encode("utf-8", "replace")
