"""Short words for what the contract's tests say over and over."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from weft.core.ids import Epoch, HostId, Millis, RunId, RunUid, Seq
from weft.errors import Corrupt
from weft.ports.new_run import NewRun
from weft.ports.store import Append, Loaded, Mail, Outcome, Release, RunRow, Store, StoredEvent

T = TypeVar("T")

HERE = HostId("here")
THERE = HostId("there")
RUN = RunUid("run-1")
OTHER = RunUid("run-2")
NOBODY = RunUid("run-0")
FLOW = ("order", "1")


_here = threading.local()


def go(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, on one loop per thread: a connection to a server belongs to the loop that opened it."""
    if not hasattr(_here, "runner"):
        _here.runner = asyncio.Runner()
    done: T = _here.runner.run(coroutine)
    return done


def new(uid: str = RUN, **fields: Any) -> NewRun:
    """A run of workflow ``order``, owned by HERE unless told otherwise; its id is ``id of`` its uid."""
    values: dict[str, Any] = {
        "id": f"id of {uid}",
        "workflow": "order",
        "version": "1",
        "style": "code",
        "created_at": 1_000,
    }
    return NewRun(uid=RunUid(uid), **({"owner": HERE} | values | fields))


def event(seq: int, body: bytes = b'{"n":1}', at: int | None = None) -> StoredEvent:
    return StoredEvent(Seq(seq), Millis(2_000 + seq if at is None else at), body)


def events(first: int, last: int) -> list[StoredEvent]:
    return [event(seq, b'{"n":%d}' % seq) for seq in range(first, last + 1)]


def append(uid: str = RUN, *, seq: int = 0, epoch: int = 1, count: int = 1, **fields: Any) -> Append:
    """The next ``count`` events after ``seq``, and whatever else is named."""
    fields.setdefault("events", events(seq + 1, seq + count))
    return Append(uid=RunUid(uid), seq=Seq(seq), epoch=Epoch(epoch), **fields)


def commit(store: Store, *batch: Append, host: HostId = HERE) -> list[Outcome]:
    return list(go(store.log.commit(batch, host)))


def start(store: Store, uid: str = RUN, *, count: int = 0, **fields: Any) -> None:
    """Make a run that HERE owns, with ``count`` events."""
    assert commit(store, append(uid, count=count, create=new(uid, **fields))) == [Outcome.ACCEPTED]


def create(store: Store, *runs: NewRun) -> list[Outcome]:
    return list(go(store.log.create(runs)))


def finish(
    store: Store, uid: str = RUN, *, seq: int = 0, epoch: int = 1, status: str = "completed", **fields: Any
) -> None:
    ended = append(uid, seq=seq, epoch=epoch, status=status, **fields)
    assert commit(store, ended) == [Outcome.ACCEPTED]


def release(uid: str = RUN, *, seq: int = 0, epoch: int = 1, mail_taken: int = 0, **fields: Any) -> Release:
    wake_at = fields.pop("wake_at", None)
    return Release(uid=RunUid(uid), seq=Seq(seq), epoch=Epoch(epoch), mail_taken=mail_taken, wake_at=wake_at, **fields)


def rest(store: Store, uid: str = RUN, **fields: Any) -> None:
    assert list(go(store.log.release([release(uid, **fields)]))) == [Outcome.ACCEPTED]


def claim(store: Store, uid: str = RUN, *, epoch: int = 0, host: HostId = HERE) -> list[RunRow]:
    return list(go(store.log.claim([RunUid(uid)], host, expected={RunUid(uid): Epoch(epoch)})))


def mail(id: str = "m1", to: str = RUN, **fields: Any) -> Mail:
    values: dict[str, Any] = {"body": b'{"say":"hello"}', "at": Millis(3_000)}
    return Mail(id=id, to=RunUid(to), **(values | fields))


def send(store: Store, *pieces: Mail) -> list[str]:
    return [str(sent) for sent in go(store.log.send(pieces))]


def row(store: Store, uid: str = RUN) -> RunRow:
    found = go(store.directory.row(RunUid(uid)))
    assert found is not None
    return found


def load(store: Store, uid: str = RUN, fold: int = 1) -> Loaded:
    found = go(store.log.load(RunUid(uid), fold=fold))
    assert found is not None
    return found


def inbox(store: Store, uid: str = RUN) -> list[str]:
    return [piece.id for piece in go(store.log.inbox(RunUid(uid)))]


def waiting(store: Store, host: HostId = HERE, *, limit: int = 10) -> dict[str, list[str]]:
    """The mail of each of a host's runs that have some."""
    inboxes = go(store.inboxes.waiting(host, limit=limit))
    return {uid: [piece.id for piece in pieces] for uid, pieces in inboxes.items() if not isinstance(pieces, Corrupt)}


async def changed(store: Store) -> bool:
    """Whether another process wrote, or may have written, since the last question."""
    return await store.inboxes.news(HERE, [FLOW], dead=[], now=Millis(0), limit=10) is not None


def found(store: Store, id: str) -> RunRow | None:
    return go(store.directory.find(RunId(id)))
