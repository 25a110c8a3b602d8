"""What everybody but the owner does in the model: taking over, and going wrong."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hot.model import SEALED, Event, ModelWal, Plan, Process, Request, Server, Takeover, WalKeys, World
from tests.hot.model_owner import Moves, broken
from tests.hot.model_stores import (
    Off,
    append,
    commit,
    contents,
    grant,
    mark_drained,
    perform,
    taken_over,
    with_durable,
)

# --- taking over ---------------------------------------------------------------------------------------------------


def taker_moves(world: World, slot: int, off: Off) -> Moves:
    """Yield what this host may do next to get a run from another."""
    host = world.hosts[slot]
    assert host is not None
    if host.takeover is not None:
        yield _step(world, slot, host, off)
        return
    durable = world.durable
    for wal, (whose, is_drained) in enumerate(durable.wals, 1):
        if not is_drained and whose != host.id and _is_dead(world, whose):
            yield from _begin(world, slot, wal, off)
    may = not durable.owner or (durable.owner != host.id and _is_dead(world, durable.owner))
    if not host.epoch and may and not durable.is_over and (durable.is_drained(durable.wal) or "H25" in off):
        granted = grant(durable, host.id)
        owner = host._replace(
            epoch=granted.epoch, log=granted.log, known=len(granted.log),
            is_attached=host.is_whole and granted.wal == host.wal,
        )  # fmt: skip
        yield "claim", taken_over(world, granted, off).with_host(slot, owner)


def _is_dead(world: World, host: int) -> bool:
    return host in world.suspected or not world.is_alive(host)


def _begin(world: World, slot: int, wal: int, off: Off) -> Moves:
    server, host = world.server, world.hosts[slot]
    assert host is not None
    if server.mode == "up" or (server.mode == "other" and "H34 taking over" in off):
        keys = server.keys(wal)
        if keys is None:
            yield "gives up a missing WAL", world._replace(durable=mark_drained(world.durable, wal))
            return
        if "H26 seal" not in off:
            server = server.with_keys(wal, keys._replace(head=SEALED))
        yield "seal", world._replace(server=server).with_host(slot, host._replace(takeover=Takeover(wal, "read")))
    elif server.long and "H29" not in off:
        yield "gives up waiting", world._replace(durable=mark_drained(world.durable, wal))


def _step(world: World, slot: int, host: Process, off: Off) -> tuple[str, World]:
    takeover, durable, server = host.takeover, world.durable, world.server
    assert takeover is not None
    done = world.with_host(slot, host._replace(takeover=None))
    wal = takeover.wal
    if takeover.stage == "read":
        keys = server.keys(wal) if server.mode == "up" else None
        if keys is None:
            return "finds nothing to read", done
        if "H26 mark" in off:
            world = world._replace(durable=mark_drained(durable, wal))
        reader = host._replace(takeover=Takeover(wal, "commit", keys.entries))
        return "read", world.with_host(slot, reader)
    if takeover.entries:
        (_, event), *rest = takeover.entries
        world = world.with_host(slot, host._replace(takeover=takeover._replace(entries=tuple(rest))))
        return "commits an entry", world if event is None else _commit_entry(
            world, event, durable.wals[wal - 1][0], off
        )
    if server.mode == "up":
        server = server.with_keys(wal, None)
    return "marks the WAL", done._replace(durable=mark_drained(durable, wal), server=server)


def _entry_request(world: World, event: Event, dead: int, off: Off) -> Request:
    durable = world.durable
    if "H26 epoch" in off:
        return Request("commit", durable.owner, durable.epoch, event.seq - 1, (event,))
    return Request("commit", dead, event.epoch, event.seq - 1, (event,))


def _commit_entry(world: World, event: Event, dead: int, off: Off) -> World:
    request = _entry_request(world, event, dead, off)
    durable, (outcome, number) = commit(world.durable, request)
    if outcome == "stale_seq" and number < request.seq and "H27" in off:
        durable, _ = commit(world.durable, request._replace(seq=number))
    return with_durable(world, durable)


# --- what happens by itself ----------------------------------------------------------------------------------------


def other_moves(world: World, plan: Plan, off: Off) -> Moves:
    """Yield what nobody decides, and what is no fault: time passes, and servers and hosts come back."""
    server, durable = world.server, world.durable
    for slot, host in enumerate(world.hosts):
        if host is None and (plan.restarts or not any(world.hosts)):
            yield "restart", world._replace(born=world.born + 1).with_host(slot, Process(world.born + 1))
    for row in durable.rows:
        rows = tuple(other for other in durable.rows if other != row)
        yield "a worker answers", world._replace(durable=durable._replace(rows=rows, mail=(*durable.mail, row)))
    for late in world.late:
        left = world._replace(late=world.late - {late})
        if isinstance(late, Request):
            yield "a late request arrives", with_durable(left, perform(durable, late, off)[0])
        elif server.mode == "up":
            yield "a late entry arrives", left._replace(server=append(server, late, off)[0])
    if server.mode != "up":
        wals = server.kept if server.mode == "other" else server.wals
        yield "redis is back", _cut(world, Server(wals, server.saved, server.has_saved))
        if not server.long:
            waited = world._replace(gone=world.gone | contents(wals) - set(durable.log))
            yield "patience ends", waited._replace(server=server._replace(long=True))
        elif server.mode == "other":
            yield "redis is adopted", _cut(world, Server((), server.saved, server.has_saved))
    elif not server.has_saved and world.faults and plan.of & {"restored", "rewound"}:
        yield "redis saves", world._replace(server=server._replace(saved=server.wals, has_saved=True))


# --- faults --------------------------------------------------------------------------------------------------------


def faults(world: World, plan: Plan, off: Off) -> Moves:
    """Yield everything that can go wrong now."""
    after = world._replace(faults=world.faults - 1)
    for slot, host in enumerate(world.hosts):
        if host is None:
            continue
        if "death" in plan.of:
            yield "death", _death(after, slot, host)
        if "suspicion" in plan.of and host.id == world.durable.owner and host.id not in world.suspected:
            yield "suspicion", after._replace(suspected=after.suspected | {host.id})
        if "unanswered" in plan.of:
            yield from _unanswered(after, slot, host, off)
    if world.server.mode == "up":
        yield from _redis_faults(after, plan)


def _death(world: World, slot: int, host: Process) -> World:
    late = set(world.late)
    if host.hot is not None and not host.hot[1]:
        late.add(host.hot[0])
    if host.slow is not None and host.slow[1] is None:
        late.add(host.slow[0])
    takeover = host.takeover
    if takeover is not None and takeover.entries and takeover.entries[0][1] is not None:
        dead = world.durable.wals[takeover.wal - 1][0]
        late.add(_entry_request(world, takeover.entries[0][1], dead, frozenset()))
    suspected = world.suspected - {host.id}
    return world._replace(late=frozenset(late), suspected=suspected).with_host(slot, None)


def _unanswered(world: World, slot: int, host: Process, off: Off) -> Moves:
    if host.hot is not None:
        request, answer = host.hot
        late = world.late if answer else world.late | {request}
        yield "no answer from redis", world._replace(late=late).with_host(slot, broken(host))
    if host.slow is not None:
        asked, told = host.slow
        late = world.late if told is not None else world.late | {asked}
        yield "no answer from the store", world._replace(late=late).with_host(slot, _gave_up(host, asked, off))


def _gave_up(host: Process, request: Request, off: Off) -> Process:
    """A drain is sent again as it was; who waits for an answer has to find out."""
    if request.epoch != host.epoch or request.kind == "attach":
        return host._replace(slow=None)
    if request.through:
        return host._replace(slow=None, is_unsure=True, pending=None)
    if "H19 epoch" in off:
        return host._replace(slow=None, is_unsure=True)
    return host._replace(slow=(request, None))


def _redis_faults(world: World, plan: Plan) -> Moves:
    server = world.server
    if "away" in plan.of:
        yield "redis is away", _cut(world, server._replace(mode="away"))
    if "other" in plan.of:
        yield "another redis", _cut(world, server._replace(mode="other", kept=server.wals, wals=()))
    if "emptied" in plan.of:
        yield "redis is emptied", _cut(_lose(world, ()), server._replace(mode="other", kept=(), wals=()))
    if "restored" in plan.of:
        lost = _lose(world, server.saved)
        yield "redis falls back", _cut(lost, server._replace(wals=server.saved))
    if "rewound" in plan.of:
        yield "redis is rewound", _rewind(_lose(world, server.saved), server)
    if "damaged" in plan.of:
        yield from _damages(world)


def _cut(world: World, server: Server) -> World:
    """Every connection is lost, and with it what was on its way."""
    hosts = tuple(_disconnected(host) for host in world.hosts)
    late = frozenset(request for request in world.late if isinstance(request, Request))
    return world._replace(server=server, hosts=hosts, late=late)


def _disconnected(host: Process | None) -> Process | None:
    if host is None:
        return None
    if host.hot is not None and not host.hot[1]:
        return broken(host)
    return host._replace(is_whole=False, is_attached=False)


def _lose(world: World, wals: WalKeys) -> World:
    lost = contents(world.server.wals) - contents(wals) - set(world.durable.log)
    return world._replace(gone=world.gone | lost)


def _rewind(world: World, server: Server) -> World:
    """The connections live on, so that a lost seal does not show."""
    after = server._replace(wals=server.saved)
    unsealed = {
        wal
        for wal, keys in enumerate(server.saved, 1)
        if keys is not None and keys.head != SEALED and _is_closed(server.keys(wal))
    }
    return world._replace(server=after, faulty=world.faulty | unsealed)


def _is_closed(keys: ModelWal | None) -> bool:
    return keys is None or keys.head == SEALED


def _damages(world: World) -> Iterator[tuple[str, World]]:
    """An entry cannot be read any more: it is lost, and so is what follows it in the same WAL."""
    for wal, keys in enumerate(world.server.wals, 1):
        for place, (n, event) in enumerate(keys.entries if keys is not None else ()):
            assert keys is not None
            if event is None:
                continue
            entries = (*keys.entries[:place], (n, None), *keys.entries[place + 1 :])
            behind = {event for _, event in keys.entries[place:] if event is not None}
            yield "an entry is damaged", world._replace(
                server=world.server.with_keys(wal, keys._replace(entries=entries)),
                gone=world.gone | behind - set(world.durable.log), faulty=world.faulty | {wal},
            )  # fmt: skip
