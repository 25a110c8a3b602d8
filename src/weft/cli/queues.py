"""List queues with their lengths, running steps and limits, and change the limits."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.cli.messages import say
from weft.cli.output import console, print_json, print_table
from weft.cli.store_access import open_service, store_label, url_of
from weft.core.durations import duration_ms, format_ms
from weft.errors import BadDuration, UsageError
from weft.ports.store import QueueLimits, QueueRow
from weft.stores import shown_url


class LimitChange(msgspec.Struct, frozen=True):
    """The new limits of a queue, as they were typed. None means no change."""

    concurrency: str | None
    rate: str | None
    priority: str | None

    def is_empty(self) -> bool:
        return self.concurrency is None and self.rate is None and self.priority is None

    def applied(self, limits: QueueLimits) -> QueueLimits:
        """Return the limits after the change. Raises UsageError."""
        changed: dict[str, Any] = {}
        if self.concurrency is not None:
            changed["concurrency"] = _number(self.concurrency, "--concurrency")
        if self.rate is not None:
            changed |= _rate(self.rate)
        if self.priority is not None:
            changed["priority"] = _priority(self.priority)
        return msgspec.structs.replace(limits, **changed)


async def print_queues(name: str | None, *, url: str | None, app: str | None, json: bool) -> None:
    """Print all queues that have tasks or limits, or one of them."""
    address = url_of(url, app)
    async with open_service(address) as service:
        queues = [row for row in await service.store.tasks.queues() if name in {None, row.queue}]
    if json:
        print_json({"store": shown_url(address), "queues": [_document(row) for row in queues]})
        return
    out = console()
    if not queues:
        out.print(f"No queue has waiting tasks or limits. Store: {store_label(address)}.")
        return
    print_table(out, ("QUEUE", "WAITING", "RUNNING", "AT ONCE", "RATE", "PRIORITY"), [_line(row) for row in queues])
    out.print(f"[dim]Store: {store_label(address)}.[/dim]")


async def limit_queue(name: str, change: LimitChange, *, url: str | None, app: str | None) -> None:
    """Set the limits of a queue, which apply to all hosts together."""
    async with open_service(url_of(url, app), create=True) as service:
        tasks = service.store.tasks
        limits = change.applied((await tasks.limits()).get(name, QueueLimits()))
        await tasks.limit(name, limits if limits != QueueLimits(per_ms=limits.per_ms) else None)
    at_once = "any number" if limits.concurrency is None else f"{limits.concurrency:,}"
    say(f"{name}: {at_once} at once, {_rate_text(limits) or 'at any rate'}, priority {limits.priority}")


def _line(row: QueueRow) -> tuple[str, ...]:
    limits = row.limits
    at_once = "" if limits.concurrency is None else f"{limits.concurrency:,}"
    return row.queue, f"{row.waiting:,}", f"{row.running:,}", at_once, _rate_text(limits), str(limits.priority)


def _rate_text(limits: QueueLimits) -> str:
    return "" if limits.rate is None else f"{limits.rate:,} in {format_ms(limits.per_ms)}"


def _document(row: QueueRow) -> dict[str, Any]:
    limits = row.limits
    return {
        "queue": row.queue,
        "waiting": row.waiting,
        "in_hands": row.running,
        "concurrency": limits.concurrency,
        "rate": limits.rate,
        "per_ms": limits.per_ms if limits.rate is not None else None,
        "priority": limits.priority,
    }


def _number(text: str, option: str) -> int | None:
    if text == "none":
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{option} {text} is not a number.", hint=f"Write {option} 5, or {option} none for no limit.")
    return int(text)


def _rate(text: str) -> dict[str, Any]:
    """Read a rate: ``10/1s``, ``10/s``, ``500/1h30m``."""
    if text == "none":
        return {"rate": None, "per_ms": QueueLimits().per_ms}
    number, _, period = text.partition("/")
    try:
        per_ms = duration_ms(period if period[:1].isdigit() else f"1{period}")
    except BadDuration:
        per_ms = 0
    rate = _number(number, "--rate") if number.isdigit() else None
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
