"""What an owner does in the model: hops, commands, drains, attaching, giving the run away."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hot.model import Event, HotAppend, ModelWal, Plan, Process, Request, World
from tests.hot.model_stores import (
    Off,
    acknowledged,
    append,
    began,
    grant,
    mark_drained,
    perform,
    with_durable,
)

Moves = Iterator[tuple[str, World]]
HOT_WITHOUT = {"command": "H5 command", "irreversible": "H5 handing out", "outcome": "H5 outcome"}
"""What is hot only if a rule does not hold."""


def owner_moves(world: World, slot: int, plan: Plan, off: Off) -> Moves:
    """Yield what this host may do next with the run, with its WAL and with its requests."""
    host = world.hosts[slot]
    assert host is not None
    yield from _answers(world, slot, host, off)
    if host.epoch:
        if host.slow is None:
            yield from _slow_lane(world, slot, host, off)
        if not host.is_busy and host.pending is None:
            yield from _decisions(world, slot, host, plan, off)
        yield from _offers(world, slot, host, off)
        if "claim" in plan.kinds and world.events and not host.is_unsure:
            called = world._replace(events=world.events - 1)
            yield "a second caller claims it", called.with_host(slot, host._replace(is_unsure=True))
    yield from _own_wal(world, slot, host, plan, off)


# --- requests and answers ------------------------------------------------------------------------------------------


def _answers(world: World, slot: int, host: Process, off: Off) -> Moves:
    if host.hot is not None:
        request, answer = host.hot
        if not answer:
            server, answer = append(world.server, request, off)
            yield "redis performs", world._replace(server=server).with_host(slot, host._replace(hot=(request, answer)))
        else:
            yield f"hears {answer} from redis", _heard_of_redis(world, slot, host, off)
    if host.slow is not None:
        asked, told = host.slow
        if told is None:
            durable, told = perform(world.durable, asked, off)
            yield (
                f"store performs {asked.kind}",
                with_durable(world.with_host(slot, host._replace(slow=(asked, told))), durable),
            )
        else:
            yield f"hears {told[0]}", _heard_of_store(world, slot, host, off)


def _heard_of_redis(world: World, slot: int, host: Process, off: Off) -> World:
    assert host.hot is not None
    (request, answer), event = host.hot, host.hot[0].event
    if answer != "ok":
        return world.with_host(slot, broken(host))
    host = host._replace(hot=None, n=request.n)
    if event.epoch != host.epoch and "H20 hop" not in off:
        return world.with_host(slot, host)
    host = host._replace(log=(*host.log, event), numbers=(*host.numbers, request.n))
    return _effects(acknowledged(world, event, request.wal), slot, host, event)


def broken(host: Process) -> Process:
    """The WAL is not used any more, and what was under way goes through."""
    pending = host.pending
    if host.hot is not None and host.hot[0].event.epoch == host.epoch:
        pending = host.hot[0].event
    return host._replace(hot=None, is_whole=False, is_attached=False, pending=pending)


def _effects(world: World, slot: int, host: Process, event: Event) -> World:
    if event.kind == "irreversible":
        world, host = began(world), host._replace(has_begun=True)
    elif event.kind == "outcome":
        host = host._replace(has_begun=False)
    return world.with_host(slot, host)


def _heard_of_store(world: World, slot: int, host: Process, off: Off) -> World:
    assert host.slow is not None
    (request, told), host = host.slow, host._replace(slow=None)
    assert told is not None
    outcome, number = told
    if request.epoch != host.epoch:
        return world.with_host(slot, host)
    if outcome == "stale_epoch":
        return world.with_host(slot, host.without_run())
    if request.kind == "attach":
        attached = outcome == "attached" and host.is_whole and request.wal == host.wal
        return world.with_host(slot, host._replace(is_attached=attached))
    if outcome == "stale_seq" and "H19 number" in off:
        return world.with_host(slot, host._replace(slow=(request._replace(seq=number), None)))
    return _drained(world, slot, host, request, number)


def _drained(world: World, slot: int, host: Process, request: Request, number: int) -> World:
    """All of the request is in the log, or what the number says."""
    last = request.events[-1]
    is_there = number >= request.seq + len(request.events)
    known = max(min(number, request.seq + len(request.events)), host.known)
    if not request.through:
        return world.with_host(slot, host._replace(known=known, numbers=host.numbers[known - host.known :]))
    if not is_there:
        return world.with_host(
            slot, host._replace(known=known, numbers=host.numbers[known - host.known :], pending=last)
        )
    world = acknowledged(world, last)
    if last.kind == "end":
        return world.with_host(slot, host.without_run())
    host = host._replace(log=(*host.log, last), known=known, numbers=(), pending=None)
    return _effects(world, slot, host, last)


# --- what it sends -------------------------------------------------------------------------------------------------


def _decisions(world: World, slot: int, host: Process, plan: Plan, off: Off) -> Moves:
    for kind, of in _possible(world, host, plan):
        event = Event(kind, len(host.log) + 1, host.epoch, host.id, of)
        after = world._replace(events=world.events - (kind != "end"))
        if _is_hot(host, kind, off):
            n = host.n + 1
            sent = host._replace(hot=(HotAppend(host.wal, n, event, _trim(host, n, off)), ""))
            yield f"{kind}, hot", after.with_host(slot, sent)
        elif host.slow is None:
            yield f"{kind}, through", after.with_host(slot, _through(host, event, off))


def _possible(world: World, host: Process, plan: Plan) -> Iterator[tuple[str, Event | None]]:
    yield "end", None
    if not world.events:
        return
    kinds = {event.kind for event in host.log}
    if "hop" in plan.kinds:
        yield "hop", None
    if "command" in plan.kinds and "command" not in kinds:
        yield "command", None
    if "irreversible" in plan.kinds:
        if "irreversible" not in kinds:
            yield "irreversible", None
        elif not kinds & {"outcome", "unknown"}:
            yield ("outcome" if host.has_begun else "unknown"), None
    if "task" in plan.kinds:
        settled = {event.of.seq for event in host.log if event.of is not None}
        if all(event.kind != "task" or event.seq in settled for event in host.log):
            yield "task", None
        for task in world.durable.mail:
            if task.seq not in settled and task.seq <= host.known and host.log[task.seq - 1].kind == "task":
                yield "result", task


def _is_hot(host: Process, kind: str, off: Off) -> bool:
    if not host.wal or not host.is_whole or not (host.is_attached or "H15" in off):
        return False
    return kind in ("hop", "task", "unknown") or HOT_WITHOUT.get(kind) in off


def _trim(host: Process, n: int, off: Off) -> int:
    numbers = host.numbers
    if "H22" in off and host.slow is not None:
        request = host.slow[0]
        numbers = numbers[max(request.seq + len(request.events) - host.known, 0) :]
    return next((number for number in numbers if number), n)


def _through(host: Process, event: Event, off: Off) -> Process:
    events = (event,) if "H18" in off else (*host.tail, event)
    return host._replace(slow=(Request("commit", host.id, host.epoch, host.known, events, through=True), None))


def _slow_lane(world: World, slot: int, host: Process, off: Off) -> Moves:
    if host.pending is not None:
        yield "goes through instead", world.with_host(slot, _through(host, host.pending, off))
    elif host.tail:
        drain = Request("commit", host.id, host.epoch, host.known, host.tail)
        yield "drain", world.with_host(slot, host._replace(slow=(drain, None)))
    if host.pending is not None or (host.hot is not None and not (host.is_unsure and "H20 hop" in off)):
        return
    if host.is_unsure:
        if not host.tail or off & {"H20", "H19 epoch"}:
            yield "claims its run again", _claim_own(world, slot, host)
    elif host.is_whole and not host.is_attached and (not host.tail or "H16 tail" in off):
        wish = Request("attach", host.id, host.epoch, wal=host.wal)
        yield "attach", world.with_host(slot, host._replace(slow=(wish, None)))


def _claim_own(world: World, slot: int, host: Process) -> World:
    if world.durable.owner != host.id:
        return world.with_host(slot, host.without_run())
    durable = grant(world.durable, host.id)
    log = (*durable.log, *host.log[len(durable.log) :])
    kept = len(log) - len(durable.log)
    host = host._replace(
        epoch=durable.epoch, log=log, known=len(durable.log), numbers=host.numbers[len(host.numbers) - kept :],
        is_attached=host.is_whole and durable.wal == host.wal, is_unsure=False,
    )  # fmt: skip
    return world._replace(durable=durable).with_host(slot, host)


def _offers(world: World, slot: int, host: Process, off: Off) -> Moves:
    """Tasks leave the process, guarded by the epoch; who performs them answers by mail."""
    durable = world.durable
    if host.epoch != durable.epoch or host.id != durable.owner:
        return
    taken = {event.of.seq for event in host.log if event.of is not None}
    taken |= {task.seq for task in (*durable.rows, *durable.mail)}
    for task in host.log if "H6" in off else host.log[: host.known]:
        if task.kind == "task" and task.seq not in taken:
            yield "offer", world._replace(durable=durable._replace(rows=(*durable.rows, task)))


# --- its WAL -------------------------------------------------------------------------------------------------------


def _own_wal(world: World, slot: int, host: Process, plan: Plan, off: Off) -> Moves:
    idle = host.hot is None and host.slow is None and host.pending is None
    durable, server = world.durable, world.server
    if host.wal and not host.is_whole and idle and not host.tail:
        done = host._replace(wal=0, n=0)
        yield "marks its WAL", world._replace(durable=mark_drained(durable, host.wal)).with_host(slot, done)
    keys = server.keys(host.wal) if host.wal and server.mode == "up" else None
    if "H14" in off and keys is not None and not host.is_whole and host.hot is None and keys.head == host.n:
        again = host._replace(is_whole=True, is_attached=bool(host.epoch) and durable.wal == host.wal)
        yield "uses its WAL again", world.with_host(slot, again)
    early = "H16 tail" in off and host.wal and not host.is_whole and host.hot is None
    allowed = server.mode == "up" or (server.mode == "other" and "H34 opening" in off)
    if (not host.wal or early) and allowed and len(durable.wals) < plan.wals:
        wals = (*durable.wals, (host.id, False))
        new = host._replace(wal=len(wals), is_whole=True, n=0, numbers=(0,) * len(host.numbers), is_attached=False)
        opened = world._replace(
            durable=durable._replace(wals=wals), server=server.with_keys(len(wals), ModelWal(0, ()))
        )
        yield "opens a WAL", opened.with_host(slot, new)
    may_release = "release" in plan.kinds and host.epoch and idle and not host.is_unsure and world.events
    if may_release and (not host.tail or "H21" in off):
        yield "release", _release(world, slot, host)


def _release(world: World, slot: int, host: Process) -> World:
    durable = world.durable
    if (durable.epoch, durable.owner) == (host.epoch, host.id):
        durable = durable._replace(owner=0, wal=0)
    return world._replace(durable=durable, events=world.events - 1).with_host(slot, host.without_run())
