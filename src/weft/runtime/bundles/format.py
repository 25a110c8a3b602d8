"""The format of a bundle: a zip with a manifest, the logs, the definitions and the blobs of runs, and checksums.

manifest.json                   what is in it, and what was left out
runs/UID.jsonl                  one stored event per line, with its checksum
definitions/NAME@VERSION.json   the versions that the logs name
blobs/SHA256                    the values that the logs only refer to
streams/UID/NAME.jsonl          output of steps, if that was asked for
SHA256SUMS                      the checksums of all of these
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.ids import RunUid
from weft.ports.definitions import Origin
from weft.ports.store import StoredEvent
from weft.stores.checksums import event_crc, uid_crc

BUNDLE = "bundle/1"
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
REDACTED = "$redacted"
REFERENCE = re.compile(rb'\{"\$weft":"blob","at":"cas://sha256:([0-9a-f]{64})"')
"""A reference of the log to a blob."""
MENTION = re.compile(rb"cas://sha256:([0-9a-f]{64})")
"""The address of a blob anywhere, such as in the output of an HTTP step."""


class BundledKey(msgspec.Struct, frozen=True):
    """An idempotency key of a command to a run."""

    key: str
    digest: str
    seq: int


class BundledRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a bundle."""

    uid: str
    id: str
    workflow: str
    version: str
    style: str
    status: str
    seq: int
    format: int
    digest: str
    """SHA-256 of its log in the bundle."""
    parent: str | None = None
    created_at: int
    attributes: dict[str, Any] = {}
    keys: list[BundledKey] = []
    """Only in a bundle that moves the run."""


class BundledDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow that the logs name."""

    name: str
    version: str


class BundledBlob(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the logs only refer to."""

    sha256: str
    size: int


class BundledStream(msgspec.Struct, frozen=True, kw_only=True):
    """An output stream of a run."""

    run: str
    stream: str
    chunks: int


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """A value that was left out. The run cannot be replayed beyond this event."""

    run: str
    """The uid of the run; empty for a definition."""
    seq: int
    pointer: str
    why: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a bundle."""

    weft: str
    version: str
    """The version of Weft that wrote it."""
    formats: list[int]
    root: str
    runs: list[BundledRun]
    definitions: list[BundledDefinition] = []
    blobs: list[BundledBlob] = []
    streams: list[BundledStream] = []
    redacted: list[Redaction] = []
    moved: str = ""
    """The digest of the logs, if the runs were moved with this bundle, so that another store may go on with them."""


class BundleLine(msgspec.Struct, frozen=True):
    """One stored event in the log of a bundle."""

    seq: int
    at: int
    crc: int
    event: Raw


class StreamLine(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of an output stream in a bundle."""

    offset: int
    at: int
    by: str
    attempt: int
    body: Raw


class DefinitionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a workflow as a file of a bundle."""

    name: str
    version: str
    style: str
    origin: Origin
    created_at: int
    body: Raw


encode = msgspec.json.Encoder().encode
_line = msgspec.json.Decoder(BundleLine)
stream_line = msgspec.json.Decoder(StreamLine).decode
manifest_of = msgspec.json.Decoder(Manifest).decode
definition_of = msgspec.json.Decoder(DefinitionFile).decode


def run_file(uid: str) -> str:
    """Return the name of the log of a run."""
    return f"runs/{uid}.jsonl"


def definition_file(name: str, version: str) -> str:
    """Return the name of the file of a version."""
    return f"definitions/{quote(name, safe='')}@{quote(version, safe='')}.json"


def stream_file(uid: str, stream: str) -> str:
    """Return the name of the file of an output stream."""
    return f"streams/{uid}/{quote(stream, safe='')}.jsonl"


def blob_file(digest: str) -> str:
    """Return the name of the file of a blob."""
    return f"blobs/{digest}"


def log_bytes(uid: RunUid, events: Sequence[StoredEvent]) -> bytes:
    """Return the log of a run as it is in a bundle."""
    start = uid_crc(uid)
    lines = (
        encode(BundleLine(one.seq, one.at, event_crc(start, one.seq, one.at, one.body), Raw(one.body)))
        for one in events
    )
    return b"".join(line + b"\n" for line in lines)


def followed_versions(events: Sequence[StoredEvent], *, asked: bool = False) -> list[str]:
    """Return the versions that a log followed; with ``asked``, also those of patches that had to wait."""
    found: list[str] = []
    for one in events:
        event = e.decode(one.body)
        if isinstance(event, e.RunStarted) or (asked and isinstance(event, e.PatchAsked)):
            found.append(event.version)
        elif isinstance(event, e.RunPatched):
            found += [event.base, event.version]
    return [version for version in dict.fromkeys(found) if version]


def bundled_log_lines(data: bytes) -> Iterator[BundleLine]:
    """Yield the lines of a log. Raises msgspec.DecodeError."""
    for line in data.splitlines():
        yield _line.decode(line)


def named_blobs(data: bytes) -> set[str]:
    """Return the digests of all blobs that a text of the log, or another blob, mentions."""
    return {digest.decode() for digest in MENTION.findall(data)}


def needed_blobs(data: bytes) -> set[str]:
    """Return the digests of the blobs that a log cannot be read without."""
    return {digest.decode() for digest in REFERENCE.findall(data)}
