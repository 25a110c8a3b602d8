"""Read a bundle and check all of it before anything is written.

A bundle may come from anywhere. Names, sizes, counts, depth, checksums and formats are checked; nothing in it is ever
used as the path of a file.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from weft.core import events as e
from weft.core.graph.model import content_hash
from weft.core.ids import Millis, RunUid, Seq
from weft.core.unstorable import is_too_deep
from weft.core.values import DEPTH_MAX
from weft.errors import Corrupt, WeftError
from weft.ports.definitions import Definition
from weft.ports.store import StoredEvent
from weft.ports.streams import NewChunk
from weft.runtime.bundles import format as bundle
from weft.runtime.programs import graph_version, is_graph, needs_definition, read_graph
from weft.stores.checksums import event_crc, uid_crc

FILE_BYTES_MAX = 1024 * 1024 * 1024
BYTES_MAX = 2 * 1024 * 1024 * 1024
"""The limit for everything in a bundle, unpacked."""
ENTRY_BYTES_MAX = 512 * 1024 * 1024
ENTRIES_MAX = 200_000
RATIO_MAX = 1_100
"""Deflate shrinks no data by more than this factor."""
MANIFEST_BYTES_MAX = 64 * 1024 * 1024
JSON_DEPTH_MAX = DEPTH_MAX + 50
"""The fields of an event are around the values of users."""

_NAMES = re.compile(
    r"manifest\.json|SHA256SUMS|runs/[A-Za-z0-9_-]{1,100}\.jsonl|definitions/[A-Za-z0-9_.~%-]{1,3000}@"
    r"[A-Za-z0-9_.~%-]{1,3000}\.json|blobs/[0-9a-f]{64}|streams/[A-Za-z0-9_-]{1,100}/[A-Za-z0-9_.~%-]{1,3000}\.jsonl"
)
_UID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_SUM = re.compile(r"([0-9a-f]{64})  ([^\n]+)")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    OverflowError,
)
"""What the library raises for a zip that is none."""


class CheckedRun(msgspec.Struct, frozen=True):
    """A run of a bundle whose log was checked."""

    about: bundle.BundledRun
    events: Sequence[StoredEvent]
    blobs: Sequence[str]
    """The digests of the blobs in the bundle that its log mentions, also through other blobs."""


class CheckedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was checked."""

    manifest: bundle.Manifest
    runs: Sequence[CheckedRun]
    definitions: Sequence[Definition]
    blobs: Mapping[str, bytes]
    output: Sequence[NewChunk] = ()
    """The chunks of all output streams."""

    def run(self, uid: str) -> CheckedRun:
        """Return one of its runs."""
        return next(run for run in self.runs if run.about.uid == uid)


def read_bundle(data: bytes) -> CheckedBundle:
    """Read a bundle and check it. Raises Corrupt, with the ``entry`` that is wrong."""
    files = _unzip_checked(data)
    _check_sums(files)
    manifest = _read_manifest(files)
    blobs = _read_blobs(files, manifest)
    definitions = _read_definitions(files, manifest)
    runs = [_read_run(one, files, blobs) for one in manifest.runs]
    output = [chunk for stream in manifest.streams for chunk in _read_stream(stream, files, manifest)]
    _check_listed(files, manifest)
    _check_definitions_named(manifest, runs, definitions)
    return CheckedBundle(manifest=manifest, runs=runs, definitions=definitions, blobs=blobs, output=output)


# --- the zip -----------------------------------------------------------------------------------------------------


def _unzip_checked(data: bytes) -> dict[str, bytes]:
    if len(data) > FILE_BYTES_MAX:
        _raise_corrupt("", f"it has {len(data):,} bytes; the limit is {FILE_BYTES_MAX:,}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries, len(data))
            return {entry.filename: _read_archive_entry(archive, entry) for entry in entries}
    except _UNREADABLE as error:
        _raise_corrupt("", f"it is not a zip file that can be read ({error})")


def _check_entries(entries: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Check names, counts and sizes by the directory of the zip, before anything is unpacked."""
    if len(entries) > ENTRIES_MAX:
        _raise_corrupt("", f"it has {len(entries):,} entries; the limit is {ENTRIES_MAX:,}")
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        if _NAMES.fullmatch(name) is None or entry.orig_filename != name:
            _raise_corrupt(name, "a bundle has no entry of that name")
        if name in seen:
            _raise_corrupt(name, "it is there twice")
        seen.add(name)
        if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS or entry.is_dir():
            _raise_corrupt(name, "it is encrypted, a folder, or packed in a way that bundles do not use")
        if (entry.external_attr >> 16) & 0o170000 not in (0, 0o100000):
            _raise_corrupt(name, "it is not a plain file")
        if entry.file_size > ENTRY_BYTES_MAX or entry.file_size > RATIO_MAX * max(entry.compress_size, 1):
            _raise_corrupt(name, f"it would unpack to {entry.file_size:,} bytes")
    total = sum(entry.file_size for entry in entries)
    if total > BYTES_MAX or total > RATIO_MAX * size:
        _raise_corrupt("", f"it would unpack to {total:,} bytes; the limit is {BYTES_MAX:,}")


def _read_archive_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Unpack an entry. It never gets larger than the directory says."""
    try:
        with archive.open(entry) as file:
            data = file.read(entry.file_size + 1)
    except _UNREADABLE as error:
        _raise_corrupt(entry.filename, f"it cannot be unpacked ({error})")
    if len(data) != entry.file_size:
        _raise_corrupt(entry.filename, "its size is not the one in the directory of the zip")
    return data


def _check_sums(files: Mapping[str, bytes]) -> None:
    for name in (bundle.MANIFEST, bundle.SUMS):
        if name not in files:
            _raise_corrupt(name, "it is missing")
    try:
        lines = files[bundle.SUMS].decode("ascii").splitlines()
    except UnicodeDecodeError:
        _raise_corrupt(bundle.SUMS, "it is not text")
    sums: dict[str, str] = {}
    for line in lines:
        match = _SUM.fullmatch(line)
        if match is None or match.group(2) in sums:
            _raise_corrupt(bundle.SUMS, f"the line {line[:80]!r} is not a checksum, or is there twice")
        sums[match.group(2)] = match.group(1)
    for name, data in files.items():
        if name != bundle.SUMS and sums.pop(name, None) != hashlib.sha256(data).hexdigest():
            _raise_corrupt(name, "it does not match its checksum")
    if sums:
        _raise_corrupt(next(iter(sums)), "it is missing")


# --- what is in it -----------------------------------------------------------------------------------------------


def _read_manifest(files: Mapping[str, bytes]) -> bundle.Manifest:
    raw = files[bundle.MANIFEST]
    if len(raw) > MANIFEST_BYTES_MAX:
        _raise_corrupt(bundle.MANIFEST, f"it has {len(raw):,} bytes")
    found = _archive_json(bundle.MANIFEST, raw)
    kind = found.get("weft") if isinstance(found, dict) else None
    if kind != bundle.BUNDLE:
        _raise_corrupt(
            bundle.MANIFEST, f"its format is {str(kind)[:60]!r}; this version of Weft reads {bundle.BUNDLE!r}"
        )
    try:
        manifest = bundle.manifest_of(raw)
    except msgspec.DecodeError as error:
        _raise_corrupt(bundle.MANIFEST, f"it cannot be read ({error})")
    uids = [run.uid for run in manifest.runs]
    if manifest.root not in uids or len(set(uids)) < len(uids):
        _raise_corrupt(bundle.MANIFEST, "its root is not one of its runs, or a run is listed twice")
    for run in manifest.runs:
        if _UID.fullmatch(run.uid) is None or not all(
            map(_is_text, (run.id, run.workflow, run.version or "-", run.status))
        ):
            _raise_corrupt(
                bundle.MANIFEST, f"the run {run.uid[:60]!r} has an id, a workflow or a status that cannot be"
            )
        if not 0 <= run.created_at < 2**62 or not 0 <= run.seq < 2**53:
            _raise_corrupt(bundle.MANIFEST, f"the run {run.id} has a time or a number that cannot be")
        if run.format > e.FORMAT:
            _raise_corrupt(bundle.MANIFEST, f"the run {run.id} needs a newer Weft (event format {run.format})")
    _check_parents(manifest)
    return manifest


def _check_parents(manifest: bundle.Manifest) -> None:
    """Refuse a tree that goes in a circle. Every run but the root has its parent in the bundle."""
    parents = {run.uid: run.parent for run in manifest.runs}
    for run in manifest.runs:
        seen: set[str] = set()
        uid: str | None = run.uid
        while uid != manifest.root:
            if uid is None or uid in seen or uid not in parents:
                _raise_corrupt(bundle.MANIFEST, f"the run {run.id} is not below the root")
            seen.add(uid)
            uid = parents[uid]


def _read_blobs(files: Mapping[str, bytes], manifest: bundle.Manifest) -> dict[str, bytes]:
    blobs: dict[str, bytes] = {}
    for one in manifest.blobs:
        name = bundle.blob_file(one.sha256)
        data = files.get(name)
        if data is None:
            _raise_corrupt(name[:200], "it is missing")
        if hashlib.sha256(data).hexdigest() != one.sha256 or len(data) != one.size:
            _raise_corrupt(name, "its content is not the one that its name says")
        blobs[one.sha256] = data
    return blobs


def _read_definitions(files: Mapping[str, bytes], manifest: bundle.Manifest) -> list[Definition]:
    found = []
    for one in manifest.definitions:
        name = bundle.definition_file(one.name, one.version)
        if name not in files:
            _raise_corrupt(name[:200], "it is missing")
        _archive_json(name, files[name])
        try:
            stored = bundle.definition_of(files[name])
        except msgspec.DecodeError as error:
            _raise_corrupt(name, f"it cannot be read ({error})")
        definition = Definition(
            name=stored.name,
            version=stored.version,
            style=stored.style,
            body=bytes(stored.body),
            created_at=Millis(stored.created_at),
            origin="run",
        )
        if (stored.name, stored.version) != (one.name, one.version) or not _is_version(definition):
            _raise_corrupt(name, "its content is not the one that its name says")
        found.append(definition)
    return found


def _is_version(definition: Definition) -> bool:
    """Return whether a definition has the version that its content has. So none can be slipped in under a name."""
    if not is_graph(definition):
        return False
    try:
        graph = read_graph(definition).graph
    except WeftError:
        return False
    return graph.name == definition.name and graph_version(content_hash(graph)) == definition.version


def _read_run(about: bundle.BundledRun, files: Mapping[str, bytes], blobs: Mapping[str, bytes]) -> CheckedRun:
    name = bundle.run_file(about.uid)
    data = files.get(name)
    if data is None:
        _raise_corrupt(name, "it is missing")
    if hashlib.sha256(data).hexdigest() != about.digest:
        _raise_corrupt(name, "it is not the log that the manifest describes")
    events = _read_events(name, about, data)
    named = bundle.named_blobs(data)
    lacking = sorted(bundle.needed_blobs(data) - set(blobs))
    if lacking:
        _raise_corrupt(bundle.blob_file(lacking[0]), f"it is missing, and {name} refers to it")
    left, reached = [*named], set[str]()
    while left:
        digest = left.pop()
        if digest in blobs and digest not in reached:
            reached.add(digest)
            left += bundle.named_blobs(blobs[digest])
    return CheckedRun(about, events, sorted(reached))


def _read_events(name: str, about: bundle.BundledRun, data: bytes) -> list[StoredEvent]:
    start = uid_crc(about.uid)
    events: list[StoredEvent] = []
    try:
        for line in bundle.bundled_log_lines(data):
            body = bytes(line.event)
            if line.seq != len(events) + 1:
                _raise_corrupt(name, f"event {len(events) + 1} is missing")
            if event_crc(start, line.seq, line.at, body) != line.crc or not 0 <= line.at < 2**62:
                _raise_corrupt(name, f"event {line.seq} does not match its checksum")
            _archive_json(name, body)
            event = e.decode(body)
            if isinstance(event, e.RunStarted) is not (line.seq == 1):
                _raise_corrupt(name, f"event {line.seq} does not belong there")
            events.append(StoredEvent(Seq(line.seq), Millis(line.at), body))
    except (msgspec.MsgspecError, OverflowError) as error:
        _raise_corrupt(name, f"line {len(events) + 1} cannot be read ({error})")
    except Corrupt as error:
        if "entry" in error.context:
            raise
        _raise_corrupt(name, f"event {len(events) + 1} cannot be read ({error.message})")
    _check_start(name, about, events)
    return events


def _read_stream(about: bundle.BundledStream, files: Mapping[str, bytes], manifest: bundle.Manifest) -> list[NewChunk]:
    name = bundle.stream_file(about.run, about.stream)
    if name not in files or about.run not in {run.uid for run in manifest.runs}:
        _raise_corrupt(name[:200], "it is missing, or it belongs to no run of the bundle")
    chunks: list[NewChunk] = []
    for line in files[name].splitlines():
        _archive_json(name, line)
        try:
            one = bundle.stream_line(line)
        except msgspec.DecodeError as error:
            _raise_corrupt(name, f"line {len(chunks) + 1} cannot be read ({error})")
        if one.offset != len(chunks) + 1 or not 0 <= one.at < 2**62 or not 0 <= one.attempt < 2**31:
            _raise_corrupt(name, f"chunk {len(chunks) + 1} is missing, or has a number that cannot be")
        chunks.append(
            NewChunk(
                uid=RunUid(about.run),
                stream=about.stream,
                key=f"import={one.offset}",
                body=bytes(one.body),
                at=Millis(one.at),
                by=one.by,
                attempt=one.attempt,
            )
        )
    if len(chunks) != about.chunks:
        _raise_corrupt(name, f"it has {len(chunks)} chunks; the manifest says {about.chunks}")
    return chunks


def _check_start(name: str, about: bundle.BundledRun, events: Sequence[StoredEvent]) -> None:
    if len(events) != about.seq:
        _raise_corrupt(name, f"it has {len(events)} events; the manifest says {about.seq}")
    if not events:
        return
    first = e.decode(events[0].body)
    assert isinstance(first, e.RunStarted)
    last = e.decode(events[-1].body)
    # A run that was cancelled before a host took it up has no style.
    is_unresolved = not about.style and isinstance(last, e.RunCancelledEvent) and last.never_begun
    if first.workflow != about.workflow or (first.style != about.style and not is_unresolved):
        _raise_corrupt(name, "it is the log of another run than the manifest says")


def _check_listed(files: Mapping[str, bytes], manifest: bundle.Manifest) -> None:
    known = {bundle.MANIFEST, bundle.SUMS}
    known |= {bundle.run_file(run.uid) for run in manifest.runs}
    known |= {bundle.definition_file(one.name, one.version) for one in manifest.definitions}
    known |= {bundle.blob_file(one.sha256) for one in manifest.blobs}
    known |= {bundle.stream_file(one.run, one.stream) for one in manifest.streams}
    for name in files:
        if name not in known:
            _raise_corrupt(name, "the manifest does not list it")


def _check_definitions_named(
    manifest: bundle.Manifest, runs: Sequence[CheckedRun], definitions: Sequence[Definition]
) -> None:
    """Refuse a run without a definition that it needs, unless the manifest says that it was left out."""
    there = {(one.name, one.version) for one in definitions}
    left_out = {one.pointer for one in manifest.redacted}
    for run in runs:
        for version in needed_versions(run):
            name = bundle.definition_file(run.about.workflow, version)
            if (run.about.workflow, version) not in there and name not in left_out:
                _raise_corrupt(name, f"it is missing, and the run {run.about.id} needs it")


def needed_versions(run: CheckedRun) -> list[str]:
    """Return the versions of a definition without which a run cannot be read."""
    about = run.about
    if not needs_definition(about.style) or not run.events:
        return []
    return list(dict.fromkeys([about.version, *bundle.followed_versions(run.events)]))


def _archive_json(name: str, raw: bytes) -> Any:
    """Decode JSON. Refuses what is nested too deeply, or contains what not every store can hold."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        _raise_corrupt(name, f"it is not JSON that can be read ({error})")
    if is_too_deep(value, JSON_DEPTH_MAX):
        _raise_corrupt(name, f"it is nested deeper than {JSON_DEPTH_MAX} levels")
    if b"\\u0000" in raw and _has_nul(value):
        _raise_corrupt(name, "it contains a NUL character")
    return value


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(part) for key, part in value.items())
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


def _is_text(text: str) -> bool:
    return 1 <= len(text) <= 500 and text.isprintable() and text == text.strip()


def _raise_corrupt(entry: str, why: str) -> NoReturn:
    what = f"its entry {entry[:200]!r}: {why}" if entry else why
    raise Corrupt(
        f"The bundle cannot be imported: {what}.",
        hint="Nothing was written. Export the run again, or copy the file again.",
        code="bundle.corrupt",
        entry=entry,
    )
