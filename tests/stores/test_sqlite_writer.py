"""The writer: where a transaction runs, and what is left when it fails."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.kit import (
    HERE,
    OTHER,
    RUN,
    append,
    changed,
    commit,
    event,
    events,
    go,
    load,
    mail,
    new,
    row,
    send,
    start,
)
from weft.core.ids import Millis
from weft.errors import Corrupt, Full, StoreError, Unavailable
from weft.ports.definitions import Definition
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome
from weft.stores.sqlite import SqliteStore, connection
from weft.stores.sqlite.checkpoint import PAGES, PAGES_MAX, Checkpointer
from weft.stores.sqlite.writer import Writer


class Disk:
    """A clock on which every commit takes as long as the test says."""

    commit_s = 0.0
    _now_s = 0.0

    def perf_counter(self) -> float:
        # Read before and after each commit.
        self._now_s += self.commit_s
        return self._now_s


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr("weft.stores.sqlite.writer.time", disk)
    return disk


def thread_of_commits(store: SqliteStore) -> list[str]:
    """The names of the threads on which commits happen from now on."""
    names: list[str] = []

    def note() -> bool:
        names.append(threading.current_thread().name)
        return False

    store.log._writer._connection.set_commit_hook(note)
    return names


@pytest.mark.usefixtures("disk")
def test_a_small_commit_happens_on_the_callers_thread(store: SqliteStore) -> None:
    start(store)
    names = thread_of_commits(store)

    commit(store, append())
    commit(store, append(seq=1, status="paused"))

    assert names == [threading.current_thread().name] * 2


def test_a_batch_happens_on_the_writers_thread(store: SqliteStore) -> None:
    start(store)
    start(store, OTHER)
    names = thread_of_commits(store)

    commit(store, append(), append(OTHER))

    assert names == ["weft-sqlite-writer"]


@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize(("size", "on_writer"), [(1_000, False), (200_000, True)])
def test_only_a_large_definition_is_written_on_the_writers_thread(
    store: SqliteStore, size: int, *, on_writer: bool
) -> None:
    names = thread_of_commits(store)
    definition = Definition(name="leads", version="1", style="graph", body=b"x" * size, created_at=Millis(0))

    go(store.definitions.put(definition))

    assert [name == "weft-sqlite-writer" for name in names] == [on_writer]


def test_when_commits_are_slow_they_leave_the_callers_thread_and_come_back(store: SqliteStore, disk: Disk) -> None:
    start(store)
    names = thread_of_commits(store)
    here, writers = threading.current_thread().name, "weft-sqlite-writer"

    disk.commit_s = 0.004
    for seq in range(8):
        assert commit(store, append(seq=seq)) == [Outcome.ACCEPTED]
    disk.commit_s = 0.0
    for seq in range(8, 40):
        assert commit(store, append(seq=seq)) == [Outcome.ACCEPTED]

    slow, quick = names[:8], names[8:]
    assert (slow[0], slow[-1]) == (here, writers)
    assert (quick[0], quick[-1]) == (writers, here)


@pytest.mark.usefixtures("disk")
def test_a_small_commit_does_not_suspend(store: SqliteStore) -> None:
    start(store)

    call = store.log.commit([append()], HERE)

    with pytest.raises(StopIteration):
        call.send(None)


def test_while_another_writes_the_loop_turns(store: SqliteStore, path: Path) -> None:
    """Another process's lock is waited for on the writer's thread."""
    start(store)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    async def scene() -> tuple[list[Outcome], int]:
        turns = 0
        waiting = asyncio.create_task(asyncio.wait_for(_commit(store, append()), 200))
        while turns < 50:
            await asyncio.sleep(0)
            turns += 1
        assert not waiting.done()
        other.execute("ROLLBACK")
        return await waiting, turns

    assert go(scene()) == ([Outcome.ACCEPTED], 50)
    other.close()


async def _commit(store: SqliteStore, *batch: Any) -> list[Outcome]:
    return list(await store.log.commit(batch, HERE))


def test_a_lock_that_is_never_given_back_is_unavailable(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.stores.sqlite.writer.BUSY_MS", 30)
    start(store)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unavailable) as caught:
        commit(store, append())

    assert caught.value.hint
    other.execute("ROLLBACK")
    other.close()
    assert commit(store, append()) == [Outcome.ACCEPTED]


def test_many_who_meet_a_lock_wait_for_it_together(
    store: SqliteStore, path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.stores.sqlite.writer.BUSY_MS", 32)
    monkeypatch.setattr("weft.stores.sqlite.writer.BUSY_MS_MIN", 1)
    waits: list[int] = []
    set_wait = Writer._wait_ms

    def wait(self: Writer, busy_ms: int) -> None:
        waits.append(busy_ms)
        disk._now_s += busy_ms / 1000
        set_wait(self, busy_ms)

    monkeypatch.setattr(Writer, "_wait_ms", wait)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    _, writer, *_ = store._parts

    async def scene() -> list[object]:
        with writer.lock:  # until all have called
            calls = [asyncio.create_task(writer.large(lambda _: None)) for _ in range(5)]
            await asyncio.sleep(0)
        return await asyncio.gather(*calls, return_exceptions=True)

    told = go(scene())

    assert {type(error) for error in told} == {Unavailable}
    assert waits == [32, 1, 1, 1, 1], "the time of the first was also theirs"
    other.execute("ROLLBACK")
    other.close()


@pytest.mark.parametrize("size", [1, 2])
def test_an_exception_inside_a_transaction_leaves_nothing_and_the_store_usable(store: SqliteStore, size: int) -> None:
    start(store)
    start(store, OTHER)
    bad = append(mail=[mail(to=OTHER)], keys=[object()])

    with pytest.raises(AttributeError):
        commit(store, *[append(OTHER), bad][-size:])

    assert (row(store).seq, row(store, OTHER).seq, row(store, OTHER).mail) == (0, 0, 0)
    assert commit(store, append(), append(OTHER)) == [Outcome.ACCEPTED] * 2


def test_what_sqlite_cannot_hold_harms_only_its_batch(store: SqliteStore) -> None:
    start(store)

    with pytest.raises(UnicodeDecodeError):
        commit(store, append(events=[event(1, b"\xff")]))

    assert commit(store, append()) == [Outcome.ACCEPTED]


@pytest.mark.parametrize("size", [1, 2])
def test_a_commit_that_fails_is_unknown_and_the_store_usable(store: SqliteStore, size: int) -> None:
    start(store)
    start(store, OTHER)
    writer = store.log._writer._connection
    writer.set_commit_hook(lambda: True)

    with pytest.raises(StoreError):
        commit(store, *[append(), append(OTHER)][:size])

    writer.set_commit_hook(None)
    assert load(store).events == []
    assert commit(store, append(), append(OTHER)) == [Outcome.ACCEPTED] * 2


def test_numbers_of_a_transaction_that_failed_are_not_used(store: SqliteStore) -> None:
    """The next run gets the same number inside; the first one must not write into its log."""
    store.log._writer._connection.set_commit_hook(lambda: True)
    with pytest.raises(StoreError):
        commit(store, append("ghost", create=new("ghost")))
    store.log._writer._connection.set_commit_hook(None)

    start(store, count=1)

    assert commit(store, append("ghost", seq=1)) == [Outcome.STALE_EPOCH]
    assert load(store).events == events(1, 1)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (apsw.FullError, Full),
        (apsw.BusyError, Unavailable),
        (apsw.LockedError, Unavailable),
        (apsw.ReadOnlyError, Unavailable),
        (apsw.CantOpenError, Unavailable),
        (apsw.IOError, Unavailable),
        (apsw.CorruptError, Corrupt),
        (apsw.NotADBError, Corrupt),
        (apsw.ConstraintError, StoreError),
    ],
)
def test_every_error_of_sqlite_has_a_meaning(path: Path, error: type[apsw.Error], kind: type[StoreError]) -> None:
    meaning = connection.translate_error(error("the words of SQLite"), path)

    assert type(meaning) is kind
    assert str(path) in str(meaning)


def test_one_who_stops_waiting_does_not_stop_the_work(store: SqliteStore) -> None:
    start(store)
    start(store, OTHER)

    async def scene() -> None:
        task = asyncio.create_task(_commit(store, append(), append(OTHER)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    go(scene())

    # The writer's thread takes things in order: this one comes after it.
    assert commit(store, append(seq=1), append(OTHER, seq=1)) == [Outcome.ACCEPTED] * 2


def test_a_loop_that_ends_while_the_writer_works_is_no_error(store: SqliteStore) -> None:
    start(store)
    start(store, OTHER)
    loop = asyncio.new_event_loop()
    store.log._writer.lock.acquire()
    task = loop.create_task(_commit(store, append(), append(OTHER)))
    loop.call_soon(loop.stop)
    loop.run_forever()
    task.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    store.log._writer.lock.release()

    assert commit(store, append(seq=1), append(OTHER, seq=1)) == [Outcome.ACCEPTED] * 2


def test_many_senders_at_once_are_all_heard(store: SqliteStore) -> None:
    start(store)

    async def scene() -> None:
        await asyncio.gather(*[store.log.send([mail(f"m{n}"), mail(f"n{n}")]) for n in range(40)])

    go(scene())

    assert row(store).mail == 80
    assert len(load(store).inbox) == 80


def test_a_search_and_commits_do_not_wait_for_each_other(store: SqliteStore) -> None:
    start(store)
    blocked = threading.Event()

    async def scene() -> tuple[list[Outcome], bool]:
        search = asyncio.create_task(store.log._reader.read_in_thread(lambda _connection: blocked.wait(200)))
        await asyncio.sleep(0)
        outcomes = await _commit(store, append())
        loaded = await store.log.load(RUN, fold=1)
        assert loaded is not None
        assert len(loaded.events) == 1
        blocked.set()
        return outcomes, await search

    assert go(scene()) == ([Outcome.ACCEPTED], True)


def fill(store: SqliteStore, seq: int, pages: int) -> int:
    """Commit about this many pages of events. Returns the number of the last one."""
    body = b'"' + b"x" * 3_000 + b'"'

    async def scene() -> int:
        last = seq
        while last < seq + pages:
            batch = append(seq=last, events=[event(n, body) for n in range(last + 1, last + 41)])
            await store.log.commit([batch], HERE)
            last += 40
        return last

    return go(scene())


def wal_rounds(path: Path) -> int:
    """How often the WAL started again, which its header counts."""
    with path.with_name("weft.db-wal").open("rb") as wal:
        return int.from_bytes(wal.read(16)[12:], "big")


def test_the_wal_starts_again_after_a_checkpoint(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", durability="fast")
    go(store.open())
    start(store)
    before = wal_rounds(path)
    seq = fill(store, 0, PAGES)

    while wal_rounds(path) == before:
        time.sleep(0.02)
        go(store.log.commit([append(seq=seq)], HERE))
        seq += 1

    assert len(load(store).events) == seq
    go(store.close())


def test_the_wal_does_not_grow_for_ever_if_the_checkpoint_thread_gets_no_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checkpointer, "_request_checkpoint", lambda self: None)
    store = SqliteStore(f"sqlite:///{path}", durability="fast")
    go(store.open())
    start(store)

    seq = fill(store, 0, 6 * PAGES)

    assert path.with_name("weft.db-wal").stat().st_size < (PAGES_MAX + PAGES) * 4096
    assert len(load(store).events) == seq
    go(store.close())


def test_reads_see_what_was_just_committed(store: SqliteStore) -> None:
    start(store)

    async def scene() -> None:
        for seq in range(30):
            await store.log.commit([append(seq=seq)], HERE)
            found = await store.directory.row(RUN)
            assert found is not None
            assert found.seq == seq + 1
            page = await store.directory.search(RunQuery())
            assert page.rows[0].seq == seq + 1

    go(scene())


def test_mail_sent_from_here_does_not_count_as_a_change(store: SqliteStore) -> None:
    start(store)
    go(changed(store))

    send(store, mail())
    send(store, mail("a"), mail("b"))

    assert not go(changed(store))


def test_what_a_later_commit_syncs_is_not_synced_by_itself(store: SqliteStore) -> None:
    def failing(connection: apsw.Connection) -> None:
        seen.append(connection.pragma("synchronous"))
        raise ValueError("no")

    writer, seen = store.log._writer, list[object]()
    assert go(writer.before_commit(lambda connection: connection.pragma("synchronous"))) == 1
    with pytest.raises(ValueError, match="no"):
        go(writer.before_commit(failing))

    assert seen == [1]
    assert go(writer.small(lambda connection: connection.pragma("synchronous"))) == 2
