"""List runs, and summarize what a store holds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from weft.cli.arguments import FILTERS, split_pairs
from weft.cli.losses import loss_document, loss_lines
from weft.cli.messages import say
from weft.cli.operations import installation_operations
from weft.cli.output import SafeText, age_text, console, print_json, print_table, run_document, status_text
from weft.cli.redis_status import redis_line, redis_reports, stream_documents, stream_lines
from weft.cli.store_access import is_server, open_service, sqlite_file, store_exists, store_label, url_of
from weft.core import values
from weft.core.durations import duration_ms
from weft.core.findings import closest
from weft.core.ids import Millis, RunId
from weft.errors import BadDuration, UsageError
from weft.observe.activity import ListedActivity, listed_activity, waits_text
from weft.observe.run_hosts import live_hosts
from weft.ports.run_query import RunQuery
from weft.ports.store import IMPORTED, OPEN_STATUSES, OVER_STATUSES, RunRow
from weft.ports.wals import Loss
from weft.runtime.bulk_plan import BulkFilter
from weft.runtime.bundles.importer import STATUS as IMPORTED_STATUS
from weft.runtime.clock import SystemClock
from weft.runtime.retention import DAY_MS, growth_sentence
from weft.runtime.retention_policy import project_retention_policy
from weft.runtime.run.append_extras import FORKED_FROM
from weft.runtime.service import RunService
from weft.runtime.typed_words import parse_word
from weft.stores import url_without_password

STATUSES = (*OPEN_STATUSES, *OVER_STATUSES)
FIELDS = ("workflow", "status", "since", "prefix", "parent")
"""What ``--where`` understands besides attributes."""
ATTRIBUTE = "attribute."
"""Begins the name of an attribute that is called like one of these fields."""
PAGE_MAX = 1_000
PROGRESS_MAX = 2


class TypedRunFilter(msgspec.Struct, frozen=True):
    """The filter options of ``weft list``, as they were typed."""

    workflow: str | None
    status: str | None
    since: str | None
    where: Sequence[str]
    limit: int
    cursor: str | None
    internal: bool = False
    forks: str | None = None
    imported: bool = False

    def found(self, now: int) -> BulkFilter:
        """Return the filter, with the fields that ``--where`` names. Raises UsageError."""
        attributes = split_pairs(self.where, FILTERS)
        fields = {name: text for name in FIELDS if (text := attributes.pop(name, None)) is not None}
        for name in ("workflow", "status", "since"):
            given = getattr(self, name)
            if given is not None and name in fields:
                raise UsageError(f"{name} is given twice.", hint=f"Leave out --where {name}=… or --{name}.")
            if given is not None:
                fields[name] = given
        status, since = fields.get("status"), fields.pop("since", None)
        if status is not None and status not in STATUSES:
            raise UsageError(f"{status!r} is not a status.", hint=f"One of: {', '.join(STATUSES)}.")
        where = {key.removeprefix(ATTRIBUTE): parse_word(text) for key, text in attributes.items()}
        return BulkFilter(since=_since_time(since, now) if since is not None else None, where=where, **fields)

    def query(self, now: int) -> RunQuery:
        """Return the query for the store, without the parent. Raises UsageError."""
        if self.limit > PAGE_MAX:
            raise UsageError(f"--limit is at most {PAGE_MAX:,}.", hint="Use --cursor for the next page.")
        found = self.found(now)
        where = dict(found.where)
        if self.imported and found.status not in (None, IMPORTED):
            where[IMPORTED_STATUS] = found.status
        return RunQuery(
            workflow=found.workflow,
            status=IMPORTED if self.imported else found.status,
            since=found.since,
            id_prefix=found.prefix,
            where=where,
            internal=self.internal,
            limit=self.limit,
            after=self.cursor,
        )

    def filtered(self) -> bool:
        options = (self.workflow, self.status, self.since, self.where, self.cursor, self.forks, self.imported)
        return any(map(bool, options))


def _since_time(since: str, now: int) -> Millis:
    try:
        return Millis(int(datetime.fromisoformat(since).astimezone().timestamp() * 1000))
    except ValueError:
        pass
    try:
        return Millis(now - duration_ms(since))
    except BadDuration as error:
        raise BadDuration(
            f"{since!r} is neither a duration nor a date.",
            hint="Write 2h, 30m, 7d, 2026-01-31 or 2026-01-31T09:30.",
        ) from error


async def print_runs(wanted: TypedRunFilter, *, url: str | None, app: str | None, json: bool) -> None:
    """Print a page of runs, newest first, and the URL of the store."""
    address = url_of(url, app)
    now = SystemClock().now_ms()
    query = wanted.query(now)
    rows: list[tuple[RunRow, ListedActivity]] = []
    cursor = None
    is_new = not store_exists(address)
    if not is_new:
        async with open_service(address) as service:
            parent = wanted.found(now).parent
            if parent is not None:
                query = msgspec.structs.replace(query, parent=(await service.row(RunId(parent))).uid)
            if wanted.forks is not None:
                original = await service.by_prefix(wanted.forks)
                query = msgspec.structs.replace(query, where={**query.where, FORKED_FROM: original.uid})
            page = await service.search(query)
            live = await live_hosts(service)
            activities = await asyncio.gather(*(listed_activity(service, row, live) for row in page.rows))
            rows = list(zip(page.rows, activities, strict=True))
            cursor = page.cursor
            for note in await misspelt_attributes(service, wanted.found(now).where) if not rows else ():
                say(note)
    if json:
        found = [
            run_document(row)
            | {"waits_for": waits_text(row, activity) or None, "progress": msgspec.to_builtins(activity.progress)}
            for row, activity in rows
        ]
        print_json({"store": url_without_password(address), "runs": found, "cursor": cursor})
    elif rows:
        _print_page(rows, now, address, cursor)
    else:
        print(_nothing(wanted, address, is_new=is_new))


def _print_page(rows: Sequence[tuple[RunRow, ListedActivity]], now: int, address: str, cursor: str | None) -> None:
    out = console()
    print_table(
        out,
        ("RUN", "WORKFLOW", "STATUS", "AGE", "WAITS FOR"),
        [
            (
                row.id,
                row.workflow,
                _status(row),
                age_text(now - row.created_at),
                "; ".join([*map(str, activity.progress[:PROGRESS_MAX]), waits_text(row, activity)]).removesuffix("; "),
            )
            for row, activity in rows
        ],
    )
    out.print(f"[dim]Store: {store_label(address)}.[/dim]")
    if cursor is not None:
        out.print(f"[dim]More: the same with --cursor {cursor}[/dim]")


def _status(row: RunRow) -> SafeText:
    """Return the status of a run with its priority; of an imported one also the status that it had."""
    had = row.attributes.get(IMPORTED_STATUS) if row.status == IMPORTED else None
    if had is not None:
        return SafeText(f"{IMPORTED}, was {had}", style="dim")
    rank = f", priority {row.priority}" if row.priority and row.ended_at is None else ""
    return SafeText.assemble(status_text(row.status), rank)


async def misspelt_attributes(service: RunService, where: Mapping[str, Any]) -> list[str]:
    """Return a note for every attribute that no run has with this value, if its name is close to a field's."""
    notes = []
    for name, value in where.items():
        near = closest(name, FIELDS)
        if near and not (await service.search(RunQuery(where={name: value}, internal=True, limit=1))).rows:
            shown = f"{name}={values.preview_text(value)}"
            notes.append(f"no run has the attribute {shown}. Did you mean --where {near}=…?")
    return notes


def _nothing(wanted: TypedRunFilter, address: str, *, is_new: bool) -> str:
    if wanted.filtered() and not is_new:
        return f"No such runs. Store: {store_label(address)}."
    if is_server(address):
        return f"No runs that you may see. Store: {store_label(address)}. Another one? --url, or set WEFT_URL."
    state = "new, empty" if is_new else "empty"
    return (
        f"No runs. Store: {store_label(address)} ({state}). "
        "Another one? weft list --url sqlite:///../shop/weft.db, or set WEFT_URL."
    )


async def print_status(*, url: str | None, app: str | None, json: bool) -> None:
    """Print the URL of the store, its size, and the number of runs with each status."""
    address = url_of(url, app)
    there = store_exists(address)
    counts: dict[str, int] = {}
    growth, is_set = "", project_retention_policy().is_set
    free: int | None = None
    losses: Sequence[Loss] = ()
    redis: list[dict[str, Any]] = []
    streams: list[dict[str, Any]] = []
    if there:
        async with open_service(address) as service:
            losses = await installation_operations(service).losses()
            counts = dict(await service.store.directory.counts())
            free = (await service.store.details()).free_bytes
            redis = redis_reports(await service.store.hosts.list_all())
            streams = stream_documents(await service.store.tasks.queues())
            if not is_set:
                since = Millis(service.clock.now_ms() - DAY_MS)
                growth = growth_sentence(await service.store.retention.size(since=since))
    sizes = _sizes(address) if there else {}
    if json:
        found = {"store": url_without_password(address), "exists": there, "files": sizes, "free_bytes": free}
        found |= {"runs": _ordered_by_status(counts), "retention": is_set, "redis": redis, "streams": streams}
        print_json({**found, "losses": [*map(loss_document, losses)]})
        return
    out = console()
    out.print(f"store   {store_label(address)}{'' if there else ' (does not exist yet)'}")
    if sizes:
        out.print(f"size    {', '.join(f'{name} {_bytes(size)}' for name, size in sizes.items())}")
    if free is not None:
        out.print(f"disk    {_bytes(free)} free")
    total = sum(counts.values())
    out.print(f"runs    {total:,}{f', {_count_open(counts):,} open' if total else ''}")
    for status, count in _ordered_by_status(counts).items():
        out.print("        ", status_text(status), f" {count:,}", sep="")
    for report in redis:
        out.print(SafeText(f"redis   {redis_line(report)}"))
    for line in stream_lines(streams, redis):
        out.print(SafeText(f"stream  {line}"))
    if growth and total:
        out.print(SafeText(f"grows   {growth}"))
    for line in loss_lines(losses):
        out.print(SafeText(line))


def _ordered_by_status(counts: dict[str, int]) -> dict[str, int]:
    return {status: counts[status] for status in STATUSES if counts.get(status)}


def _count_open(counts: dict[str, int]) -> int:
    return sum(counts.get(status, 0) for status in OPEN_STATUSES)


def _sizes(address: str) -> dict[str, int]:
    if not address.startswith("sqlite:"):
        return {}
    path = sqlite_file(address)
    files = [path, path.with_name(f"{path.name}-wal")]
    return {file.name: file.stat().st_size for file in files if file.exists()}


def _bytes(size: int) -> str:
    amount: float = size
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"
