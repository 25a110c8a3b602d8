"""Limits as people see them: what is declared, which keys wait, which of them are full, and who is ahead of a task."""

from __future__ import annotations

import msgspec

from weft.core.durations import format_rate
from weft.ports.tasks import KeyLimit, KeyLimits, LimitedKey, QueueLimits, TaskStanding

KEYS_MAX = 200
"""How many keys are shown: those with the most waiting."""


class LimitedKeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a limit, with its tasks or runs."""

    key: str
    waiting: int
    running: int
    since: int | None
    """Since when the oldest of those that wait has waited, in milliseconds since 1970."""
    is_full: bool
    """Whether as many are under way as the limit allows."""


class LimitView(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a step or workflow, and its keys."""

    kind: str
    """``step`` or ``workflow``."""
    name: str
    limit: KeyLimit
    waiting: int
    running: int
    keys: list[LimitedKeyView]
    """The keys that have tasks or runs, those with the most waiting first."""


async def read_limit_views(store: KeyLimits) -> list[LimitView]:
    """Return all limits, by name. Those that are no longer declared are left out when nothing counts against them."""
    declared = await store.declared()
    rows = await store.limited_keys(limit=KEYS_MAX)
    names = sorted(declared.keys() | {row.limit for row in rows})
    return [
        _limit_view(name, declared.get(name, KeyLimit()), [row for row in rows if row.limit == name]) for name in names
    ]


def _limit_view(full: str, limit: KeyLimit, rows: list[LimitedKey]) -> LimitView:
    kind, _, name = full.partition("/")
    return LimitView(
        kind=kind,
        name=name,
        limit=limit,
        waiting=sum(row.waiting for row in rows),
        running=sum(row.running for row in rows),
        keys=[
            LimitedKeyView(
                key=row.key,
                waiting=row.waiting,
                running=row.running,
                since=row.since,
                is_full=limit.concurrency is not None and row.running >= limit.concurrency,
            )
            for row in rows
        ],
    )


def describe_standing(limits: KeyLimit | QueueLimits, found: TaskStanding) -> str:
    """Say what a limit allows, and where something that waits for it stands."""
    who = f" ({', '.join(found.runs)})" if found.runs else ""
    return f"{_allowed(limits)}; {found.running:,} under way, {found.ahead:,} ahead of it{who}"


def _allowed(limits: KeyLimit | QueueLimits) -> str:
    """Say what a limit allows."""
    if limits.concurrency == 0:
        return "it is paused"
    parts = [f"{limits.concurrency:,} at once"] if limits.concurrency is not None else []
    if limits.rate is not None:
        parts.append(format_rate(limits.rate, limits.per_ms))
    return f"at most {' and '.join(parts)}"
