"""Import the runs of a bundle. They are inert: readable, and nothing goes on with them.

Blobs and definitions come first, then the runs, children before their parents. Each of these writes is one transaction
that can be repeated, so an import that was interrupted is completed by the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

import msgspec

from weft.core.ids import INTERNAL_WORKFLOWS, Epoch, Millis, RunUid, Seq, reserved_prefix, tenant_prefix
from weft.errors import Corrupt, IdTaken
from weft.ports.boundary import boundary
from weft.ports.definitions import VERSION_MARK
from weft.ports.new_run import NewRun
from weft.ports.store import IMPORTED, MOVED, Append, Outcome, RunRow
from weft.runtime.bundles.archive import CheckedBundle, CheckedRun, needed_versions
from weft.runtime.bundles.format import definition_file
from weft.runtime.bundles.own_uids import digest_of_log, with_own_uids
from weft.runtime.offered_versions import sees_version
from weft.runtime.orders import check_own_id, check_run_id
from weft.runtime.programs import store_definition
from weft.runtime.service import RunService

STATUS = "weft.imported"
"""The attribute of imported runs: the status that they had when they were exported."""
SUFFIX = "~import"
IDS_TRIED_MAX = 1_000
CHUNKS_PER_WRITE = 500


class ImportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a bundle, and what became of it here."""

    uid: str
    id: str
    original: str
    """The id that it had where it was exported."""
    workflow: str
    status: str
    """The status that it had there; that which it has here, if it was adopted."""
    created: bool
    """False if this run was here already; of a run that was to be adopted, if it was adopted before."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import. The first run is the root."""

    runs: list[ImportedRun]
    definitions: int
    blobs: int
    redacted: int
    """How many values were left out of the bundle."""


class Importer:
    """Writes the runs of a checked bundle."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def write(self, bundle: CheckedBundle) -> Imported:
        """Import all runs of a bundle. What is here already stays as it is. Raises IdTaken, Unavailable, Full."""
        check_own_ids(bundle)
        bundle = await self._bundle_for_caller(_without_claims(bundle))
        known = {run.about.uid: await self._existing_run(run) for run in bundle.runs}
        if not all(known.values()):
            await self._write_content(bundle)
        done = {}
        for run in _children_first(bundle):
            row = known[run.about.uid]
            done[run.about.uid] = _imported_view(run, row) if row is not None else await self._write_run(run)
        await self._write_output(bundle)
        return _import_result(bundle, [done[run.about.uid] for run in reversed(_children_first(bundle))])

    async def _bundle_for_caller(self, bundle: CheckedBundle) -> CheckedBundle:
        """Return the bundle as the caller may import it: a tenant has uids of its own."""
        prefix = tenant_prefix(self._service.stored_id("x"))
        if not prefix:
            return bundle
        await self._refuse_unseen(bundle)
        uids = [run.about.uid for run in bundle.runs]
        rows = [await self._service.store.directory.row(RunUid(uid)) for uid in uids]
        return with_own_uids(bundle, prefix, frozenset(row.uid for row in rows if row is not None))

    async def _refuse_unseen(self, bundle: CheckedBundle) -> None:
        """Refuse runs that would be read with versions that are not in the bundle, and that the tenant may not know."""
        there = {(one.name, one.version) for one in bundle.definitions}
        for run in bundle.runs:
            name = run.about.workflow
            for version in needed_versions(run):
                if (name, version) in there:
                    continue
                stored = await self._service.store.definitions.get(name, version)
                if stored is None or not await sees_version(self._service, name, version):
                    what = f"{name}@{version[:60]}, which {run.about.id} needs, was left out"
                    raise Corrupt(
                        f"The bundle cannot be imported: {what}.",
                        hint="Nothing was written. Let the operator import the bundle.",
                        code="bundle.corrupt",
                        entry=definition_file(name, version),
                    )

    async def write_new(self, bundle: CheckedBundle, uids: Container[str]) -> None:
        """Import the runs with these uids, which are not here, and everything that the others need."""
        await self._write_content(bundle)
        for run in _children_first(bundle):
            if run.about.uid in uids:
                await self._write_run(run)
        await self._write_output(bundle)

    async def describe(self, bundle: CheckedBundle, *, created: Container[str]) -> Imported:
        """Return the result for runs that are here. ``created`` are those of this import."""
        runs = []
        for run in reversed(_children_first(bundle)):
            row = await self._service.store.directory.row(RunUid(run.about.uid))
            if row is not None:
                view = _imported_view(run, row)
                runs.append(msgspec.structs.replace(view, status=row.status, created=run.about.uid in created))
        return _import_result(bundle, runs)

    async def _write_content(self, bundle: CheckedBundle) -> None:
        """Write the blobs and definitions. They change nothing as long as no run names them."""
        store = self._service.store
        for digest, data in bundle.blobs.items():
            boundary("import.blob")
            if await store.blobs.put(data) != digest:
                raise Corrupt(f"The blob {digest} was stored under another digest.")
        for definition in bundle.definitions:
            boundary("import.definition")
            new = msgspec.structs.replace(definition, created_at=self._service.clock.now_ms())
            await store_definition(store.definitions, new)

    async def _write_output(self, bundle: CheckedBundle) -> None:
        """Write the output of imported runs. A chunk that is there already is not written again."""
        lengths: dict[RunUid, Mapping[str, int]] = {}
        for uid in {chunk.uid for chunk in bundle.output}:
            row = await self._service.store.directory.row(uid)
            if row is not None and row.status in (IMPORTED, MOVED):
                lengths[uid] = await self._service.store.streams.lengths(uid)
        seen: Counter[tuple[RunUid, str]] = Counter()
        chunks = []
        for chunk in bundle.output:
            place = (chunk.uid, chunk.stream)
            seen[place] += 1
            if chunk.uid in lengths and seen[place] > lengths[chunk.uid].get(chunk.stream, 0):
                chunks.append(chunk)
        for start in range(0, len(chunks), CHUNKS_PER_WRITE):
            boundary("import.output")
            await self._service.store.streams.write(chunks[start : start + CHUNKS_PER_WRITE])

    async def _existing_run(self, run: CheckedRun) -> RunRow | None:
        """Return the run if it is here already. Raises IdTaken if another run has its uid."""
        row = await self._service.store.directory.row(RunUid(run.about.uid))
        if row is None:
            return None
        there = await self._service.store.log.events(row.uid, after=Seq(0), limit=max(run.about.seq, 1))
        if digest_of_log(row.uid, there[: run.about.seq]) != run.about.digest:
            raise IdTaken(
                f"{row.id} has the uid {row.uid} of a run in the bundle, but another log.",
                hint="The run has changed since it was exported, or values were left out of the bundle.",
                run_id=row.id,
            )
        return row

    async def _write_run(self, run: CheckedRun) -> ImportedRun:
        about = run.about
        # The id of one of Weft's own runs, such as a schedule, stays free for such a run.
        first = 1 if reserved_prefix(about.id) else 0
        for n in range(first, IDS_TRIED_MAX):
            suffix = "" if n == 0 else SUFFIX if n == 1 else f"{SUFFIX}{n}"
            run_id = self._service.stored_id(check_run_id(f"{about.id}{suffix}"))
            new = NewRun(
                uid=RunUid(about.uid),
                id=run_id,
                workflow=about.workflow,
                version=about.version,
                style=about.style,
                created_at=Millis(about.created_at),
                parent=RunUid(about.parent) if about.parent is not None else None,
                attributes={**about.attributes, STATUS: about.status},
                format=about.format,
            )
            append = Append(
                uid=new.uid,
                epoch=Epoch(0),
                seq=Seq(0),
                events=run.events,
                create=new,
                status=IMPORTED,
                refs=run.blobs,
            )
            boundary("import.run")
            if await self._service.write_run(append) is Outcome.ACCEPTED:
                return ImportedRun(
                    uid=about.uid,
                    id=f"{about.id}{suffix}",
                    original=about.id,
                    workflow=about.workflow,
                    status=about.status,
                    created=True,
                )
            row = await self._existing_run(run)
            if row is not None:  # another import of the same bundle was quicker
                return _imported_view(run, row)
            await self._refuse_foreign(run)
        raise IdTaken(f"{about.id}{SUFFIX} and {IDS_TRIED_MAX:,} more ids are taken.", run_id=about.id)

    async def _refuse_foreign(self, run: CheckedRun) -> None:
        """Refuse a run whose id is free and that was refused: another tenant has it."""
        if await self._service.store.directory.find(self._service.stored_id(run.about.id)) is None:
            raise IdTaken(f"The uid of {run.about.id} is taken, so it cannot be imported.", run_id=run.about.id)


def check_own_ids(bundle: CheckedBundle) -> None:
    """Raise UsageError if a run has an id of Weft's own runs, and is none of them."""
    for run in bundle.runs:
        if run.about.workflow not in INTERNAL_WORKFLOWS:
            check_own_id(run.about.id)


def _without_claims(bundle: CheckedBundle) -> CheckedBundle:
    """Return a bundle whose runs claim nothing of this store: no parent, and no version that is not in the bundle."""
    there = {(one.name, one.version) for one in bundle.definitions}
    root, runs = bundle.manifest.root, []
    for run in bundle.runs:
        about = run.about
        claimed = [
            name
            for name in about.attributes
            if name.startswith(VERSION_MARK) and (about.workflow, name.removeprefix(VERSION_MARK)) not in there
        ]
        attributes = {name: value for name, value in about.attributes.items() if name not in claimed}
        parent = None if about.uid == root else about.parent
        runs.append(
            msgspec.structs.replace(run, about=msgspec.structs.replace(about, attributes=attributes, parent=parent))
        )
    return msgspec.structs.replace(bundle, runs=runs)


def _children_first(bundle: CheckedBundle) -> list[CheckedRun]:
    """Return the runs in an order in which the root is last, and every run comes after its children."""
    below: dict[str | None, list[CheckedRun]] = {}
    for run in bundle.runs:
        if run.about.uid != bundle.manifest.root:
            below.setdefault(run.about.parent, []).append(run)
    ordered = [bundle.run(bundle.manifest.root)]
    for run in ordered:  # the list grows during the loop
        ordered += below.get(run.about.uid, [])
    return ordered[::-1]


def _import_result(bundle: CheckedBundle, runs: list[ImportedRun]) -> Imported:
    return Imported(
        runs=runs,
        definitions=len(bundle.definitions),
        blobs=len(bundle.blobs),
        redacted=len(bundle.manifest.redacted),
    )


def _imported_view(run: CheckedRun, row: RunRow) -> ImportedRun:
    about = run.about
    return ImportedRun(
        uid=about.uid, id=row.id, original=about.id, workflow=about.workflow, status=about.status, created=False
    )
