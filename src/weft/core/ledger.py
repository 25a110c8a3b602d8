"""The ledger of budgets: what is reserved and spent of each unit, in each scope. Pure.

A scope is a run with a budget, whose uid names it, the account of one run (``account_of``), or a window of time of a
tenant. A *move* changes the ledger. Moves are written in the transaction of the append that causes them, and every
store applies them with ``Ledger.apply``: a reservation is granted in all of its scopes or in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weft.core.budgets import WARN_PARTS, Cover, units_of


class HandOut(msgspec.Struct, frozen=True, array_like=True):
    """One delivery of a task. Each has a reservation of its own, because a lost one may have been billed."""

    task: int
    attempt: int
    delivery: int


class BudgetWindow(msgspec.Struct, frozen=True, array_like=True):
    """A scope for a period of time, with the limits that hold in it now."""

    scope: str
    limits: dict[str, int]
    ends_at: int = 0
    """When the period is over. Its rows can be forgotten from then on."""


class SetLimits(msgspec.Struct, frozen=True, tag="limits", omit_defaults=True):
    """Set the limits of a scope, or raise them by these amounts."""

    scope: str
    limits: dict[str, int]
    warn: int = 0
    """At which part of a limit ``Crossed`` is reported, in thousandths; 0 for never. Ignored by a raise."""
    raises: bool = False


class Reserve(msgspec.Struct, frozen=True, tag="reserve", omit_defaults=True):
    """Reserve the cover of a call in all scopes. A call that has a reservation keeps it."""

    call: HandOut
    cover: Cover
    scopes: list[str]
    windows: list[BudgetWindow] = []


class Settle(msgspec.Struct, frozen=True, tag="settle", omit_defaults=True):
    """Replace the reservation of a call by what it spent. Without ``spent``, that is at most all that was reserved."""

    call: HandOut
    scopes: list[str]
    spent: dict[str, int] | None = None
    windows: list[BudgetWindow] = []
    """Where a call without a reservation spends, beside ``scopes``."""


class ReleaseCover(msgspec.Struct, frozen=True, tag="release", omit_defaults=True):
    """Drop the reservation of a call that was never made."""

    call: HandOut


class MarkWarned(msgspec.Struct, frozen=True, tag="warned", omit_defaults=True):
    """Report a unit of a scope as ``Crossed`` no longer."""

    scope: str
    unit: str


Move = SetLimits | Reserve | Settle | ReleaseCover | MarkWarned


class Granted(msgspec.Struct, frozen=True):
    """The answer to a reservation: it is made."""

    call: HandOut
    output: int
    """How many output tokens are covered."""


class Short(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a reservation: not enough is left, and nothing was reserved."""

    call: HandOut
    scope: str
    unit: str
    limit: int
    spent: int
    reserved: int
    wanted: int


class Crossed(msgspec.Struct, frozen=True):
    """A scope has spent so much of a unit that its run must record a warning."""

    scope: str
    unit: str


Answer = Granted | Short | Crossed


class LedgerRow(msgspec.Struct, kw_only=True):
    """One unit of one scope."""

    scope: str
    unit: str
    limit: int | None = None
    spent: int = 0
    at_most: int = 0
    """How much of ``spent`` was only reserved, by calls whose end nobody knows."""
    reserved: int = 0
    warn: int = 0
    """At which part of the limit a warning is due, in thousandths; 0 for never."""
    warned: bool = False
    ends_at: int = 0
    """When the period of the scope is over; 0 for the scopes of runs."""

    @property
    def left(self) -> int | None:
        """How much can still be reserved; None without a limit."""
        return None if self.limit is None else self.limit - self.spent - self.reserved

    @property
    def is_crossed(self) -> bool:
        """Whether a warning is due."""
        limited = self.limit is not None and self.warn > 0 and not self.warned
        return limited and self.spent * WARN_PARTS >= (self.limit or 0) * self.warn


class Reservation(msgspec.Struct, frozen=True):
    """What is reserved for a call."""

    scopes: list[str]
    units: dict[str, int]
    output: int = 0


RowKey = tuple[str, str]
CallKey = tuple[str, int, int, int]


def account_of(uid: str) -> str:
    """Return the scope of the calls of one run, without those of its children. It has no limits."""
    return f"{uid}/own"


WINDOW = "window:"
"""The prefix of the scopes of windows."""


def window_scope(tenant: str, per: str, rule: str, begins_at: int) -> str:
    """Return the scope of a window of time of a tenant, in which a rule counts."""
    return f"{WINDOW}{tenant}/{per}/{rule}/{begins_at}"


def window_length(scope: str) -> str:
    """Return the length of a window, such as ``day``; empty if the scope belongs to a run."""
    return scope.rsplit("/", 3)[1] if scope.startswith(WINDOW) else ""


def run_of(scope: str) -> str:
    """Return the uid of the run to which a scope belongs; that of a window belongs to none."""
    return scope.partition("/")[0]


def call_key(uid: str, call: HandOut) -> CallKey:
    """Return the key of a reservation."""
    return uid, call.task, call.attempt, call.delivery


def scopes_of(uid: str, moves: Iterable[Move]) -> set[str]:
    """Return the scopes that moves of a run may touch, apart from those of its reservations."""
    found = {account_of(uid)}
    for move in moves:
        if isinstance(move, Reserve | Settle):
            found.update(move.scopes)
            found.update(window.scope for window in move.windows)
        if isinstance(move, SetLimits | MarkWarned):
            found.add(move.scope)
    return found


class Ledger:
    """Rows and reservations: all of a store, or those that some moves need. Keeps track of what it changes."""

    def __init__(
        self, rows: Iterable[LedgerRow] = (), reservations: Mapping[CallKey, Reservation] | None = None
    ) -> None:
        self.rows: dict[RowKey, LedgerRow] = {(row.scope, row.unit): row for row in rows}
        self.reservations: dict[CallKey, Reservation] = dict(reservations or {})
        self.changed: dict[RowKey, LedgerRow] = {}
        """The rows that were changed or are new."""
        self.made: dict[CallKey, Reservation] = {}
        self.gone: set[CallKey] = set()

    def forget_changes(self) -> None:
        """Begin to keep track of changes again."""
        self.changed, self.made, self.gone = {}, {}, set()

    def apply(self, uid: str, moves: Sequence[Move]) -> list[Answer]:
        """Apply the moves of an append, in order. Returns the answers to its reservations, and the warnings due."""
        answers: list[Answer] = []
        for move in moves:
            match move:
                case Reserve():
                    answers.append(self._reserve_cover(uid, move))
                case Settle():
                    answers += self._settle_call(uid, move)
                case ReleaseCover():
                    self._remove_reservation(uid, move.call)
                case SetLimits():
                    self._set_limits(move)
                case MarkWarned():
                    self._row_to_change(move.scope, move.unit).warned = True
        return answers

    def _row_to_change(self, scope: str, unit: str) -> LedgerRow:
        """Return a row that is about to change."""
        row = self.rows.get((scope, unit))
        if row is None:
            row = self.rows[scope, unit] = LedgerRow(scope=scope, unit=unit)
        self.changed[scope, unit] = row
        return row

    def _set_limits(self, move: SetLimits) -> None:
        for unit, amount in move.limits.items():
            row = self._row_to_change(move.scope, unit)
            if move.raises:
                row.limit = (row.limit or 0) + amount
            else:
                row.limit, row.warn = amount, move.warn

    def _open_window(self, window: BudgetWindow, units: Iterable[str]) -> None:
        """Set the limits of a window. Those of these units that it no longer limits are dropped."""
        for unit in {**window.limits, **dict.fromkeys(units)}:
            row = self._row_to_change(window.scope, unit)
            row.limit, row.ends_at = window.limits.get(unit), window.ends_at

    def _reserve_cover(self, uid: str, move: Reserve) -> Granted | Short:
        key = call_key(uid, move.call)
        known = self.reservations.get(key)
        if known is not None:
            return Granted(move.call, known.output)
        for window in move.windows:
            self._open_window(window, units_of(move.cover.amounts))
        scopes = [*move.scopes, *(window.scope for window in move.windows)]
        short = self._shortage(move, scopes)
        if short is not None:
            return short
        output = self._longest_affordable_output(move.cover, scopes)
        made = Reservation([*scopes, account_of(uid)], cost_with(move.cover, output), output)
        self.reservations[key] = self.made[key] = made
        self.gone.discard(key)
        for scope in made.scopes:
            for unit, amount in made.units.items():
                self._row_to_change(scope, unit).reserved += amount
        return Granted(move.call, output)

    def _shortage(self, move: Reserve, scopes: Sequence[str]) -> Short | None:
        """Return the first unit of which less is left than the call needs at least."""
        for unit, wanted in cost_with(move.cover, move.cover.output_least).items():
            for scope in scopes:
                row = self.rows.get((scope, unit))
                if row is not None and row.left is not None and wanted > row.left:
                    return Short(
                        call=move.call,
                        scope=scope,
                        unit=unit,
                        limit=row.limit or 0,
                        spent=row.spent,
                        reserved=row.reserved,
                        wanted=wanted,
                    )
        return None

    def _longest_affordable_output(self, cover: Cover, scopes: Sequence[str]) -> int:
        """Return the longest output whose cost is left in all scopes."""
        if cover.least is None:
            return cover.output
        output, span = cover.output, cover.output - cover.output_least
        most, least = units_of(cover.amounts), units_of(cover.least)
        for unit, wanted in most.items():
            for scope in scopes:
                row = self.rows.get((scope, unit))
                if row is not None and row.left is not None and wanted > row.left:
                    extra, left = wanted - least.get(unit, 0), row.left - least.get(unit, 0)
                    output = min(output, cover.output_least + left * span // extra)
        return output

    def _settle_call(self, uid: str, move: Settle) -> list[Crossed]:
        known = self._remove_reservation(uid, move.call)
        spent, at_most = move.spent, False
        if spent is None:
            spent, at_most = (known.units if known is not None else {}), True
        scopes = known.scopes if known is not None else self._scopes_without_cover(uid, move, spent)
        crossed = []
        for scope in scopes:
            for unit, amount in spent.items():
                row = self._row_to_change(scope, unit)
                row.spent += amount
                row.at_most += amount if at_most else 0
                if row.is_crossed:
                    crossed.append(Crossed(scope, unit))
        return crossed

    def _scopes_without_cover(self, uid: str, move: Settle, spent: Iterable[str]) -> list[str]:
        for window in move.windows:
            self._open_window(window, spent)
        return [*move.scopes, *(window.scope for window in move.windows), account_of(uid)]

    def _remove_reservation(self, uid: str, call: HandOut) -> Reservation | None:
        """Remove the reservation of a call, if it has one."""
        key = call_key(uid, call)
        known = self.reservations.pop(key, None)
        if known is None:
            return None
        self.made.pop(key, None)
        self.gone.add(key)
        for scope in known.scopes:
            for unit, amount in known.units.items():
                self._row_to_change(scope, unit).reserved -= amount
        return known


def cost_with(cover: Cover, output: int) -> dict[str, int]:
    """Return what a call may cost with this many output tokens, rounded up."""
    most = units_of(cover.amounts)
    if cover.least is None or output >= cover.output:
        return most
    least, span = units_of(cover.least), cover.output - cover.output_least
    more = output - cover.output_least
    cost = {unit: least.get(unit, 0) - (least.get(unit, 0) - amount) * more // span for unit, amount in most.items()}
    return {unit: amount for unit, amount in cost.items() if amount}
