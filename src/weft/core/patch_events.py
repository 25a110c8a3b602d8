"""The events of patches. Import them from ``weft.core.events``."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from weft.core.event_parts import ABSENT, Earlier, LogEvent
from weft.core.goal_events import GoalChange
from weft.core.ids import EntryId

FRAME = "frame/"
"""What the id of a frame follows where ids of tokens may stand too."""


class SlotPatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a patch of a graph run does to the slot of a node in one scope.

    Edges in ``skip`` count as not taken, those in ``unskip`` no longer do. ``ran`` says that the node has run in this
    scope, so that it is never skipped there. ``forget`` says that nothing comes to the node any more. ``anew`` says
    that everything that came to it comes once more, so what came before does not count.
    """

    node: str
    path: list[tuple[str, str, int]]
    skip: list[str] = []
    unskip: list[str] = []
    ran: bool = False
    forget: bool = False
    anew: bool = False


class TokenPatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a patch of a graph run does to one token: ``do`` is move, drop, start or reroute.

    A moved token continues as ``to`` at ``node`` in the scope ``path``. It arrives over ``edge`` if it moves to a join.
    A rerouted token waits at its join over ``edge`` from now on.
    """

    do: str
    token: str = ""
    to: str = ""
    node: str = ""
    path: list[tuple[str, str, int]] = []
    edge: str = ""
    value: Raw = ABSENT
    earlier: Earlier | None = None
    """The work that was done at that node before, in the same scope, if there was any."""


class RepeatedWork(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work of a graph run that a patch lets a run come to again: at this node, in this scope or inside it."""

    node: str
    path: list[tuple[str, str, int]]
    work: Earlier


class RunPatched(LogEvent, frozen=True, kw_only=True, tag="run_patched"):
    """A run follows another definition from here on.

    ``base`` and ``version`` are the versions before and after. ``rev`` counts the patches of the run. ``patch`` is the
    patch as it was given, and ``undoes`` the rev that this patch undoes. The other fields hold all its consequences, so
    that applying the event decides nothing. A code run only follows another version: its log was replayed against it.
    """

    rev: int
    base: str = ""
    version: str = ""
    patch: Raw = ABSENT
    by: str = ""
    reason: str = ""
    approved_by: list[str] = []
    digest: str = ""
    undoes: int = 0
    asked: int = 0
    """The number of the patch, if it had to wait or to be reviewed."""
    review: list[str] = []
    """Code runs: who must agree to every patch from now on."""
    unchecked: bool = False
    """The search for unsound positions was cut short, and the patch permits that."""

    # graph runs
    nodes: dict[str, str] = {}
    """Renamed nodes."""
    edges: dict[str, str] = {}
    loops: dict[str, str] = {}
    """Edges and loops with another name from now on."""
    slots: list[SlotPatch] = []
    tokens: list[TokenPatch] = []
    recalled: dict[str, dict[str, tuple[int, Raw]]] = {}
    """Outputs that expressions name only now, with their visits, by token (or ``FRAME`` and a frame) and node."""
    state: dict[str, Any] = {}
    """Values written into the state of a graph run, by path."""
    due: int | None = None
    """The new limit of a graph run in time (0: none), if it has changed."""
    repeated: list[RepeatedWork] = []
    approved: list[str] = []
    """Places whose irreversible work may be performed again without asking, each once."""
    forced: list[EntryId] = []
    """Irreversible tasks that were in flight. Their outcome is unknown."""
    retried: str = ""
    """The place from which the run is retried. Then this is no patch of a person, and nothing to undo."""

    # goal runs
    goal: GoalChange | None = None


class PatchAsked(LogEvent, frozen=True, kw_only=True, tag="patch_asked"):
    """A patch is not applied now: it waits until it is allowed, or until people agree, or both.

    The number of this event names the patch from here on. It ends with ``RunPatched`` or ``PatchDropped``.
    """

    patch: Raw
    base: str = ""
    version: str = ""
    prepared: Raw = ABSENT
    undoes: int = 0
    expect: str = ""
    by: str = ""
    reason: str = ""
    due: int = 0
    """When the patch is dropped (0: never). Without it, the patch only waits for its review."""
    wait_at: str = ""
    """Wait until all tokens of the run are at this node."""
    review: list[str] = []
    """Who must agree: one of these people or groups, but not the one who asks for the patch."""


class PatchReviewAsked(LogEvent, frozen=True, kw_only=True, tag="patch_review_asked"):
    """People are asked about the plan of a patch. If the plan differs when they agree, they are asked again."""

    asked: int
    digest: str
    title: str
    about: Raw


class PatchDropped(LogEvent, frozen=True, kw_only=True, tag="patch_dropped"):
    """A patch that was asked for is not applied: its time is over, or it was rejected, withdrawn or overtaken."""

    asked: int
    code: str
    message: str = ""
    by: str = ""
    reason: str = ""
