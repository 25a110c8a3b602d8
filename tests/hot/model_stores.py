"""The two servers of the model: how each judges a request, and what the books say when something changes there."""

from __future__ import annotations

from collections.abc import Iterable

from tests.hot.model import SEALED, Durable, Event, HotAppend, ModelWal, Request, Server, World

ONE_HISTORY = "the durable log is one history"
EPOCHS_ONCE = "an epoch is granted once"
ANSWERED_STAYS = "an answered command is there"
BEGUN_ONCE = "irreversible work begins once"
OUTCOME_STAYS = "a recorded outcome stays"
OWN_TASK = "a result goes to its own task"
SHOWN_STAYS = "what was shown stays"
NO_LOSS = "an acknowledged hop is missing only if Redis lost it and its owner died or was taken for dead"
CAN_END = "every state can end without another fault"
INVARIANTS = (
    ONE_HISTORY, EPOCHS_ONCE, ANSWERED_STAYS, BEGUN_ONCE, OUTCOME_STAYS, OWN_TASK, SHOWN_STAYS, NO_LOSS, CAN_END,
)  # fmt: skip

Off = frozenset[str]
"""The rules that do not hold."""


# --- the durable store ---------------------------------------------------------------------------------------------


def commit(durable: Durable, request: Request) -> tuple[Durable, tuple[str, int]]:
    """Judge an append by epoch and number: the log after it, the outcome, and the number in the row."""
    number = len(durable.log)
    if durable.is_over or (request.epoch, request.host) != (durable.epoch, durable.owner):
        return durable, ("stale_epoch", number)
    if request.seq != number:
        return durable, ("stale_seq", number)
    taken = {event.of for event in request.events if event.of is not None}
    after = durable._replace(
        log=durable.log + request.events, mail=tuple(result for result in durable.mail if result not in taken)
    )
    if after.is_over:
        after = after._replace(owner=0, wal=0)
    return after, ("accepted", len(after.log))


def attach(durable: Durable, request: Request, off: Off) -> tuple[Durable, tuple[str, int]]:
    """Let the row name another WAL, if the run is still its host's, and the WAL is the one that the host has now."""
    number = len(durable.log)
    if durable.is_over or (request.epoch, request.host) != (durable.epoch, durable.owner):
        return durable, ("stale_epoch", number)
    is_current = durable.wal_of(request.host) == request.wal and not durable.is_drained(request.wal)
    if not is_current and "H16 current" not in off:
        return durable, ("refused", number)
    return durable._replace(wal=request.wal), ("attached", number)


def perform(durable: Durable, request: Request, off: Off) -> tuple[Durable, tuple[str, int]]:
    return attach(durable, request, off) if request.kind == "attach" else commit(durable, request)


def grant(durable: Durable, host: int) -> Durable:
    """Claim: the next epoch, and the WAL that the host has."""
    return durable._replace(
        epoch=durable.epoch + 1, owner=host, wal=durable.wal_of(host), grants=(*durable.grants, host)
    )


def mark_drained(durable: Durable, wal: int) -> Durable:
    whose = durable.wals[wal - 1][0]
    return durable._replace(wals=(*durable.wals[: wal - 1], (whose, True), *durable.wals[wal:]))


# --- Redis ---------------------------------------------------------------------------------------------------------


def append(server: Server, request: HotAppend, off: Off) -> tuple[Server, str]:
    """The script that adds an entry."""
    keys = server.keys(request.wal) if server.mode != "away" else None
    if keys is None:
        return server, "no"
    if keys.head == SEALED and "H12 seal" not in off:
        return server, "no"
    if keys.head not in (request.n - 1, SEALED) and "H12 gap" not in off:
        return server, "no"
    entries = tuple(entry for entry in keys.entries if entry[0] >= request.trim)
    return server.with_keys(request.wal, ModelWal(request.n, (*entries, (request.n, request.event)))), "ok"


def contents(wals: Iterable[ModelWal | None]) -> set[Event]:
    return {event for keys in wals if keys is not None for _, event in keys.entries if event is not None}


# --- the books -----------------------------------------------------------------------------------------------------


def with_durable(world: World, durable: Durable) -> World:
    """The world after the durable store has changed."""
    if durable.log == world.durable.log:
        return world._replace(durable=durable)
    there = set(durable.log)
    acked = world.acked - there
    breach = world.breach or _history(durable)
    if durable.is_over and not breach:
        breach = missing(acked, world.gone, frozenset())
    return world._replace(durable=durable, acked=acked, gone=world.gone - there, breach=breach)


def _history(durable: Durable) -> str:
    epoch = 0
    for number, event in enumerate(durable.log, 1):
        if event.seq != number or event.epoch < epoch:
            return ONE_HISTORY
        if event.host != durable.grants[event.epoch - 1]:
            return EPOCHS_ONCE
        if event.of is not None and durable.log[event.of.seq - 1] != event.of:
            return OWN_TASK
        epoch = event.epoch
    return ""


def missing(acked: Iterable[Event], gone: frozenset[Event], off: Off) -> str:
    """What is broken if these were acknowledged and are not in the durable store, now that the run is another's."""
    for event in sorted(acked):
        if event.kind == "command":
            return ANSWERED_STAYS
        if event.kind == "outcome":
            return OUTCOME_STAYS
        if "H7" in off:
            return SHOWN_STAYS
        if event not in gone:
            return NO_LOSS
    return ""


def taken_over(world: World, durable: Durable, off: Off) -> World:
    """The world after somebody else was granted the run: what the log lacks now, it lacks for ever."""
    gone = world.gone if world.durable.owner else frozenset[Event]()
    return world._replace(
        durable=durable, acked=frozenset(), breach=world.breach or missing(world.acked, gone, off),
        suspected=world.suspected - {world.durable.owner},
    )  # fmt: skip


def acknowledged(world: World, event: Event, wal: int = 0) -> World:
    """The world after an owner took an event for done, because a WAL has it, or the durable store: effects go out."""
    gone = world.gone | {event} if wal in world.faulty else world.gone
    breach = world.breach
    acked = world.acked
    if event not in world.durable.log:
        is_owner = event.epoch == world.durable.epoch
        acked |= {event} if is_owner else set()  # what a former owner hears late was judged when it lost the run
        if not wal or not (is_owner or event in gone):
            breach = breach or NO_LOSS
    return world._replace(acked=acked, gone=gone, breach=breach)


def began(world: World) -> World:
    """The world after irreversible work began."""
    begun = world.begun + 1
    return world._replace(begun=begun, breach=world.breach or (BEGUN_ONCE if begun > 1 else ""))
