"""Orders of forks: a point in the log, edits, and what to do with effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from weft.core import events as e
from weft.core.plurals import shortened
from weft.errors import UsageError

EFFECTS: tuple[e.Effects, ...] = ("perform", "reuse", "none")


class ForkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to fork, and how: a point, edits, and what to do with effects. Without a point: from the beginning."""

    at: int | None = None
    """The number of the last event that the fork shares."""
    before: str = ""
    after: str = ""
    failure: bool = False
    """Before the work began whose failure ended the run."""
    visit: int | None = None
    """Which visit of the place ``before`` or ``after``, from 1; None for the last."""
    input: Mapping[str, Any] = {}
    """Arguments that change."""
    words: Sequence[str] = ()
    """The names of arguments that were typed as text and are not converted yet."""
    set: Mapping[str, Any] = {}
    """Results of steps, by place."""
    state: Mapping[str, Any] = {}
    """Values of a graph's state."""
    given: Mapping[str, Any] = {}
    """Facts of a goal run."""
    to: str = ""
    """The version with which the fork goes on: a version of the code, or a version or tag of a graph. In a goal run,
    ``now`` stands for the steps that are registered now."""
    effects: e.Effects = "perform"
    approved: Sequence[str] = ()
    """Places whose irreversible work may be performed without asking."""
    id: str | None = None
    reason: str = ""


class ForkOptions(TypedDict, total=False):
    """The same as arguments by name."""

    at: int | None
    before: str
    after: str
    failure: bool
    visit: int | None
    input: Mapping[str, Any]
    set: Mapping[str, Any]
    state: Mapping[str, Any]
    given: Mapping[str, Any]
    to: str
    effects: e.Effects
    approved: Sequence[str]
    id: str | None
    reason: str


def check_order(order: ForkOrder) -> None:
    """Check what can be checked without the run. Raises UsageError."""
    for name, number in (("at", order.at), ("visit", order.visit)):
        if number is not None and type(number) is not int:  # a bool is an int, too
            raise UsageError(f"{name}={shortened(repr(number))} is not a whole number.")
    points = [order.at is not None, bool(order.before), bool(order.after), order.failure]
    if sum(points) > 1:
        raise UsageError("A fork has one point: --at, --before, --after or --failure.")
    if order.visit is not None and not (order.before or order.after):
        raise UsageError("--visit counts the visits of a place: name it with --before or --after.")
    if order.effects not in EFFECTS:
        raise UsageError(f"{order.effects[:60]!r} is none of {', '.join(EFFECTS)}.")


def changes_of(order: ForkOrder) -> dict[str, Any]:
    """Return what an order says besides its reason, as JSON: the options of a bulk fork."""
    plain: dict[str, Any] = msgspec.to_builtins(order)
    usual: dict[str, Any] = msgspec.to_builtins(ForkOrder())
    return {name: value for name, value in plain.items() if name != "reason" and value != usual[name]}
