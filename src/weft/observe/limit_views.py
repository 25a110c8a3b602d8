"""Limits per key as people see them: what is declared, which keys wait, and which of them are full."""

from __future__ import annotations

import msgspec

from weft.ports.tasks import KeyLimit, KeyLimits, LimitedKey

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


async def read_limits(store: KeyLimits) -> list[LimitView]:
    """Return all limits, by name. Those that are no longer declared are left out when nothing counts against them."""
    declared = await store.declared()
    rows = await store.limited_keys(limit=KEYS_MAX)
    names = sorted(declared.keys() | {row.limit for row in rows})
    return [_view(name, declared.get(name, KeyLimit()), [row for row in rows if row.limit == name]) for name in names]


def _view(full: str, limit: KeyLimit, rows: list[LimitedKey]) -> LimitView:
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
