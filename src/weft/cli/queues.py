"""List queues and limits per key with what waits and runs, and change the limits of queues."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.cli.messages import say
from weft.cli.operations import installation_operations
from weft.cli.output import console, print_json, print_table
from weft.cli.store_access import open_service, store_label, url_of
from weft.core.durations import format_ms, parse_rate
from weft.core.plurals import pluralize
from weft.errors import BadDuration, UsageError
from weft.observe.limit_views import LimitView, read_limit_views
from weft.ports.tasks import KeyLimit, QueueLimits, QueueRow
from weft.stores import url_without_password

KEYS_SHOWN = 20


class LimitChange(msgspec.Struct, frozen=True):
    """The new limits of a queue, as they were typed. None means no change."""

    concurrency: str | None
    rate: str | None
    priority: str | None
    stream: bool | None = None

    def is_empty(self) -> bool:
        return all(one is None for one in (self.concurrency, self.rate, self.priority, self.stream))

    def applied(self, limits: QueueLimits) -> QueueLimits:
        """Return the limits after the change. Raises UsageError."""
        changed: dict[str, Any] = {}
        if self.concurrency is not None:
            changed["concurrency"] = _queue_number(self.concurrency, "--concurrency")
        if self.rate is not None:
            changed |= _rate(self.rate)
        if self.priority is not None:
            changed["priority"] = _priority(self.priority)
        if self.stream is not None:
            changed["stream"] = self.stream
        return msgspec.structs.replace(limits, **changed)


async def print_queues(name: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """Print all queues that have tasks or limits, or one of them."""
    address = url_of(url, app)
    async with open_service(address) as service:
        queues = [row for row in await service.store.tasks.queues() if name in {None, row.queue}]
        limits = await read_limit_views(service.store.tasks) if name is None else []
    if json:
        limited = {"limits": [_limit_document(view) for view in limits]} if name is None else {}
        print_json(
            {"store": url_without_password(address), "queues": [_queue_document(row) for row in queues], **limited}
        )
        return
    out = console()
    if not queues and not limits:
        out.print(f"No queue has waiting tasks or limits. Store: {store_label(address)}.")
        return
    if queues:
        headings = ("QUEUE", "WAITING", "RUNNING", "AT ONCE", "RATE", "PRIORITY", "")
        print_table(out, headings, [_queue_line(row) for row in queues])
    if queues and limits:
        out.print()
    if limits:
        lines = [line for view in limits for line in _limit_lines(view)]
        print_table(out, ("LIMIT", "KEY", "WAITING", "RUNNING", "AT ONCE", "RATE", ""), lines)
    out.print(f"[dim]Store: {store_label(address)}.[/dim]")


async def limit_queue(name: str, change: LimitChange, *, url: str | None, app: str | None) -> None:
    """Set the limits of a queue, which apply to all hosts together."""
    async with open_service(url_of(url, app), create=True) as service:
        limits = change.applied((await service.store.tasks.limits()).get(name, QueueLimits()))
        await installation_operations(service).limit_queue(name, limits)
    at_once = "any number" if limits.concurrency is None else f"{limits.concurrency:,}"
    stream = ", performed by workers on a Redis stream" if limits.stream else ""
    say(f"{name}: {at_once} at once, {_rate_text(limits) or 'at any rate'}, priority {limits.priority}{stream}")


def _queue_line(row: QueueRow) -> tuple[str, ...]:
    limits = row.limits
    at_once = "" if limits.concurrency is None else f"{limits.concurrency:,}"
    counts = (f"{row.waiting:,}", f"{row.running:,}")
    return row.queue, *counts, at_once, _rate_text(limits), str(limits.priority), "stream" if limits.stream else ""


def _limit_lines(view: LimitView) -> list[tuple[str, ...]]:
    """Return a line for the limit, and one for each key that waits or is full."""
    limit = view.limit
    at_once = "" if limit.concurrency is None else f"{limit.concurrency:,}"
    shown = [key for key in view.keys if key.waiting or key.is_full]
    rest = len(view.keys) - min(len(shown), KEYS_SHOWN)
    total = (f"{view.kind} {view.name}", pluralize(len(view.keys), "key") if limit.key or limit.by_code else "")
    lines: list[tuple[str, ...]] = [(*total, f"{view.waiting:,}", f"{view.running:,}", at_once, _rate_text(limit), "")]
    if limit.key or limit.by_code:
        lines += [
            ("", key.key, f"{key.waiting:,}", f"{key.running:,}", "", "", "full" if key.is_full else "")
            for key in shown[:KEYS_SHOWN]
        ]
        if rest:
            lines.append(("", f"and {pluralize(rest, 'more key')}", "", "", "", "", ""))
    return lines


def _limit_document(view: LimitView) -> dict[str, Any]:
    limit = view.limit
    return {
        "kind": view.kind,
        "name": view.name,
        "concurrency": limit.concurrency,
        "rate": limit.rate,
        "per_ms": limit.per_ms if limit.rate is not None else None,
        "key": limit.key or None,
        "waiting": view.waiting,
        "running": view.running,
        "keys": [
            {"key": key.key, "waiting": key.waiting, "running": key.running, "full": key.is_full} for key in view.keys
        ],
    }


def _rate_text(limits: QueueLimits | KeyLimit) -> str:
    """Return a rate as people write it: 20/s, 100/1m."""
    return "" if limits.rate is None else f"{limits.rate}/{'s' if limits.per_ms == 1_000 else format_ms(limits.per_ms)}"


def _queue_document(row: QueueRow) -> dict[str, Any]:
    limits = row.limits
    return {
        "queue": row.queue,
        "waiting": row.waiting,
        "in_hands": row.running,
        "concurrency": limits.concurrency,
        "rate": limits.rate,
        "per_ms": limits.per_ms if limits.rate is not None else None,
        "priority": limits.priority,
        "stream": limits.stream,
    }


def _queue_number(text: str, option: str) -> int | None:
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option} {text} is not a number.", hint=f"Write {option} 5, or {option} none for no limit.")
    return int(text)


def _rate(text: str) -> dict[str, Any]:
    """Read a rate: ``10/1s``, ``10/s``, ``500/1h30m``."""
    if text == "none":
        return {"rate": None, "per_ms": QueueLimits().per_ms}
    try:
        rate, per_ms = parse_rate(text)
    except BadDuration:
        rate = per_ms = 0
    if not rate or per_ms <= 0:
        raise UsageError(f"--rate {text} is not a rate.", hint="Write --rate 10/s, --rate 500/1h, or --rate none.")
    return {"rate": rate, "per_ms": per_ms}


def _priority(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--priority {text} is not a number.", hint="Write --priority 5; higher comes first."
        ) from None
