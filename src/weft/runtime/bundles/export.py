"""Export runs: read their logs, definitions and blobs from a store, leave secrets out, and write one file."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import zipfile
from collections.abc import Sequence
from importlib.metadata import version as package_version
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.ids import RunUid, Seq
from weft.errors import LimitExceeded, NotFound, Refused, UsageError
from weft.ports.run_query import RunQuery
from weft.ports.store import KeyRow, RunRow, StoredEvent
from weft.runtime.bundles import format as layout
from weft.runtime.bundles.redaction import ASKED, Redactor, secrets_in
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.programs import needs_definition
from weft.runtime.service import RunService

BYTES_MAX = 1024 * 1024 * 1024
RUNS_MAX = 20_000
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a bundle, so that equal runs make equal bundles."""
_REF = rb"cas://sha256:%b"
_SIZE = rb'","size":\d+'

EVENTS = "events/1"


class ExportedEvent(msgspec.Struct, frozen=True):
    """One event as stored."""

    seq: int
    at: int
    event: Raw


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """One exported run as JSON, which can be replayed."""

    weft: str
    run: str
    uid: str
    workflow: str
    version: str
    events: list[ExportedEvent]
    blobs: dict[str, str] = {}


class Exporter:
    """Reads runs for one layout."""

    def __init__(self, service: RunService, redact: Sequence[str] = ()) -> None:
        """``redact`` are JSON pointers into events, such as ``/input/card``."""
        self._service = service
        self._pointers = redact
        self._redactor = Redactor({}, redact)
        self._logs: dict[RunUid, list[StoredEvent]] = {}
        self._blobs: dict[str, bytes] = {}
        self._keys: dict[RunUid, Sequence[KeyRow]] = {}
        self._bytes = 0

    async def bundle(self, row: RunRow, *, tree: bool = False, streams: bool = False, moved: str = "") -> bytes:
        """Return a run, or the whole tree below it, as a layout. Raises NotFound, RunUnreadable, LimitExceeded.

        ``moved`` is the digest of the runs, if they were moved. Then nothing may be left out: raises Refused.
        """
        rows = await self.tree(row) if tree else [row]
        for one in rows:
            await self._read_log(one)
            if moved:
                self._keys[one.uid] = await self._service.store.log.keys(one.uid)
        definitions = await self._load_definitions(rows)
        await self._redact_all(list(definitions.values()))
        left_out = [name for name, text in definitions.items() if self._redactor.mentions(text)]
        for name in left_out:
            self._redactor.redacted.append(
                layout.Redaction(run="", seq=0, pointer=layout.definition_file(*name), why="it contains a secret")
            )
            del definitions[name]
        output = await self._read_streams(rows) if streams else {}
        if moved:
            self._check_whole(row)
        logs = {one.uid: layout.log_bytes(one.uid, self._logs[one.uid]) for one in rows}
        manifest = layout.Manifest(
            weft=layout.BUNDLE,
            version=package_version("weft"),
            formats=sorted({one.format for one in rows}),
            root=row.uid,
            runs=[self._describe_run(one, logs[one.uid]) for one in rows],
            definitions=[layout.BundledDefinition(name=name, version=version) for name, version in definitions],
            blobs=[layout.BundledBlob(sha256=digest, size=len(data)) for digest, data in sorted(self._blobs.items())],
            streams=[
                layout.BundledStream(run=uid, stream=name, chunks=data.count(b"\n"))
                for (uid, name), data in output.items()
            ],
            redacted=self._redactor.redacted,
            moved=moved,
        )
        files = {
            layout.MANIFEST: msgspec.json.format(layout.encode(manifest), indent=1),
            **{layout.run_file(uid): data for uid, data in logs.items()},
            **{layout.definition_file(*name): text for name, text in definitions.items()},
            **{layout.blob_file(digest): data for digest, data in sorted(self._blobs.items())},
            **{layout.stream_file(uid, name): data for (uid, name), data in output.items()},
        }
        return await asyncio.to_thread(zip_files, files)

    async def events(self, row: RunRow) -> dict[str, Any]:
        """Return one run as ``weft.testing.replay`` reads it. Raises NotFound, RunUnreadable, Refused."""
        if (await self._service.search(RunQuery(parent=row.uid, limit=1))).rows:
            raise Refused(f"{row.id} has child runs.", hint="Export a bundle: weft export RUN --tree -o FILE")
        await self._read_log(row)
        await self._redact_all([])
        events = self._logs[row.uid]
        exported = Exported(
            weft=EVENTS,
            run=row.id,
            uid=row.uid,
            workflow=row.workflow,
            version=row.version,
            events=[ExportedEvent(one.seq, one.at, Raw(one.body)) for one in events],
            blobs={digest: _exported_text(digest, data) for digest, data in sorted(self._blobs.items())},
        )
        return msgspec.json.decode(msgspec.json.encode(exported), type=dict[str, Any])

    def _check_whole(self, row: RunRow) -> None:
        """Refuse to move a run from whose log something would be left out."""
        places = [f"{one.pointer} of event {one.seq}" for one in self._redactor.redacted]
        if places:
            raise Refused(
                f"{row.id} cannot be moved: secrets are never in a bundle, and they are in its log "
                f"({', '.join(places[:5])}).",
                hint="Fork it there: weft export and weft import, without --move and --adopt.",
                code="bundle.secret",
            )

    # --- reading --------------------------------------------------------------------------------------------------

    async def tree(self, root: RunRow) -> list[RunRow]:
        """Return a run and all runs below it, every run after its parent."""
        rows = [root]
        for row in rows:  # the list grows during the loop
            after: str | None = None
            while True:
                page = await self._service.search(RunQuery(parent=row.uid, after=after))
                rows += page.rows
                after = page.cursor
                if after is None:
                    break
            if len(rows) > RUNS_MAX:
                raise LimitExceeded(f"The tree below {root.id} has more than {RUNS_MAX:,} runs.", code="limit.bundle")
        return rows

    async def _read_log(self, row: RunRow) -> None:
        events = []
        async for one in self._service.reader.events(row):
            if one.seq > row.seq:
                break  # written after the row was read
            events.append(one)
            self._count_bytes(len(one.body))
        if events and events[0].seq > 1:
            raise Refused(f"{row.id} cannot be exported: the beginning of its log was deleted.")
        self._logs[row.uid] = events
        text = b"\n".join(one.body for one in events)
        await self._read_blobs(layout.named_blobs(text), layout.needed_blobs(text), row)

    async def _read_blobs(self, named: set[str], needed: set[str], row: RunRow) -> None:
        """Read blobs, and those to which they refer. A text may look like an address that leads nowhere."""
        left = [digest for digest in sorted(named) if digest not in self._blobs]
        while left:
            digest = left.pop()
            if digest in self._blobs:
                continue
            try:
                data = await self._service.store.blobs.get(digest)
            except NotFound:
                if digest in needed:
                    message = f"{row.id} cannot be exported: its blob {digest} is not in the store."
                    raise NotFound(message, hint="weft show RUN names the value.") from None
                continue
            self._count_bytes(len(data))
            self._blobs[digest] = data
            left += layout.named_blobs(data)

    def _count_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > BYTES_MAX:
            raise LimitExceeded(
                f"The bundle would have more than {BYTES_MAX:,} bytes.",
                hint="Export fewer runs: without --tree.",
                code="limit.bundle",
            )

    async def _load_definitions(self, rows: Sequence[RunRow]) -> dict[tuple[str, str], bytes]:
        """Return the versions that the logs name, as files."""
        found: dict[tuple[str, str], bytes] = {}
        for row in rows:
            if not needs_definition(row.style):
                continue
            for version in dict.fromkeys([row.version, *layout.followed_versions(self._logs[row.uid], asked=True)]):
                key = (row.workflow, version)
                stored = await self._service.store.definitions.get(*key) if row.workflow != CATALOGUE else None
                if stored is None or key in found:
                    continue
                found[key] = layout.encode(
                    layout.DefinitionFile(
                        name=stored.name,
                        version=stored.version,
                        style=stored.style,
                        origin=stored.origin,
                        created_at=stored.created_at,
                        body=Raw(stored.body),
                    )
                )
        return found

    async def _read_streams(self, rows: Sequence[RunRow]) -> dict[tuple[RunUid, str], bytes]:
        """Return the output streams of the runs, as files without secrets."""
        found: dict[tuple[RunUid, str], bytes] = {}
        streams = self._service.store.streams
        for row in rows:
            for name, length in (await streams.lengths(row.uid)).items():
                chunks = await streams.read(row.uid, name, after=0, limit=length)
                lines = [
                    layout.encode(
                        layout.StreamLine(
                            offset=one.offset, at=one.at, by=one.by, attempt=one.attempt, body=Raw(one.body)
                        )
                    )
                    for one in chunks
                ]
                data = b"".join(line + b"\n" for line in lines)
                self._count_bytes(len(data))
                found[row.uid, name] = self._redactor.output(row.uid, name, data)
        return found

    # --- leaving out ----------------------------------------------------------------------------------------------

    async def _redact_all(self, more: Sequence[bytes]) -> None:
        texts = [*(one.body for events in self._logs.values() for one in events), *self._blobs.values(), *more]
        self._redactor = Redactor(secrets_in(texts), self._pointers)
        if self._redactor.is_idle:
            return
        changed = self._cut_blobs() | self._strike_blobs()
        for uid, events in self._logs.items():
            clean = [self._redactor.event(uid, one) for one in events]
            self._logs[uid] = [StoredEvent(one.seq, one.at, _update_references(one.body, changed)) for one in clean]

    def _strike_blobs(self) -> dict[str, bytes]:
        """Take secrets out of blobs. Returns those that changed, by their former digests."""
        changed: dict[str, bytes] = {}
        for digest, data in list(self._blobs.items()):
            uid, seq = self._place_of(digest)
            clean = self._redactor.blob(uid, seq, data)
            if clean != data:
                changed[digest] = clean
        return self._replace_blobs(changed)

    def _cut_blobs(self) -> dict[str, bytes]:
        """Take what the pointers name out of blobs. Returns those that changed, by their former digests."""
        changed: dict[str, bytes] = {}
        for uid, events in self._logs.items():
            for one in events:
                for text, rest, digest in self._redactor.pointed(one.body):
                    clean = self._redactor.cut_blob(changed.get(digest) or self._blobs[digest], rest)
                    if clean is not None:
                        changed[digest] = clean
                        self._redactor.redacted.append(layout.Redaction(run=uid, seq=one.seq, pointer=text, why=ASKED))
        return self._replace_blobs(changed)

    def _replace_blobs(self, changed: dict[str, bytes]) -> dict[str, bytes]:
        for digest, data in changed.items():
            del self._blobs[digest]
            self._blobs[hashlib.sha256(data).hexdigest()] = data
        # Blobs that refer to a changed one change too.
        for digest, data in list(self._blobs.items()):
            again = _update_references(data, changed)
            if again != data:
                changed |= self._replace_blobs({digest: again})
        return changed

    def _place_of(self, digest: str) -> tuple[str, Seq]:
        """Return the first event that refers to a blob."""
        address = digest.encode()
        for uid, events in self._logs.items():
            for one in events:
                if address in one.body:
                    return uid, one.seq
        return "", Seq(0)

    def _describe_run(self, row: RunRow, log: bytes) -> layout.BundledRun:
        return layout.BundledRun(
            uid=row.uid,
            id=row.id,
            workflow=row.workflow,
            version=row.version,
            style=row.style,
            status=row.status,
            seq=row.seq,
            format=row.format,
            digest=hashlib.sha256(log).hexdigest(),
            parent=row.parent,
            created_at=row.created_at,
            attributes=self._redactor.value(row.uid, dict(row.attributes)),
            keys=[layout.BundledKey(one.key, one.digest, one.seq) for one in self._keys.get(row.uid, ())],
        )


def zip_files(files: dict[str, bytes]) -> bytes:
    """Return a bundle with these files and their checksums."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, layout.SUMS: sums.encode()}.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return out.getvalue()


def _update_references(data: bytes, changed: dict[str, bytes]) -> bytes:
    """Return a text in which references to changed blobs lead to the new ones."""
    for digest, new in changed.items():
        address = digest.encode()
        if address in data:
            to = b"cas://sha256:%b" % hashlib.sha256(new).hexdigest().encode()
            sized = b'%b","size":%d' % (to, len(new))
            data = re.sub(_REF % address + _SIZE, sized, data)
            data = data.replace(b"cas://sha256:%b" % address, to)
    return data


def _exported_text(digest: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(
            f"The blob {digest} is not text, so it cannot be part of JSON.", hint="Export a bundle: -o FILE"
        ) from None
