"""Damage: an event that is not what was written is found out, for that run alone."""

import time
from collections.abc import Callable
from pathlib import Path

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
    send,
    start,
    waiting,
)
from weft.core.ids import Seq
from weft.errors import Corrupt, Unavailable
from weft.ports.store import Outcome, Snapshot, Store
from weft.stores.sqlite import SqliteStore
from weft.stores.sqlite.same_file import CHECK_S

MARK = b"a body that is easy to find in the file"


def edit(path: Path, *statements: str) -> None:
    """What a person, or a stray program, does to the file."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def refuses(store: Store, uid: str = RUN) -> str:
    with pytest.raises(Corrupt) as caught:
        load(store, uid)
    assert uid in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE events SET body = '{\"n\":7}' WHERE run = 1 AND seq = 3", "Event 3"),
        ("UPDATE events SET body = body || ' ' WHERE run = 1 AND seq = 1", "Event 1"),
        ("UPDATE events SET at = at + 1 WHERE run = 1 AND seq = 2", "Event 2"),
        ("UPDATE events SET crc = crc + 1 WHERE run = 1 AND seq = 5", "Event 5"),
        ("DELETE FROM events WHERE run = 1 AND seq = 2", "Event 2"),
        ("DELETE FROM events WHERE run = 1 AND seq = 5", "Event 5"),
        ("DELETE FROM events WHERE run = 1 AND seq = 1", "Event 1"),
        ("DELETE FROM events WHERE run = 1", "Event 1"),
        ("UPDATE runs SET seq = 4 WHERE num = 1", "Event 5"),
        ("UPDATE runs SET seq = 6 WHERE num = 1", "Event 6"),
        ("UPDATE events SET seq = 6 WHERE run = 1 AND seq = 5", "Event 5"),
        ("UPDATE events SET seq = seq + 100 WHERE run = 1 AND seq = 4", "Event 4"),
    ],
)
def test_an_edited_log_is_refused_and_the_event_is_named(
    store: SqliteStore, path: Path, statement: str, named: str
) -> None:
    start(store, count=5)
    start(store, OTHER, count=5)

    edit(path, statement)

    assert named in refuses(store)
    assert load(store, OTHER).events == events(1, 5)


def test_events_of_two_runs_that_were_swapped_are_found_out(store: SqliteStore, path: Path) -> None:
    start(store, count=1)
    start(store, OTHER, count=1)

    edit(
        path,
        "UPDATE events SET run = 3 WHERE run = 1",
        "UPDATE events SET run = 1 WHERE run = 2",
        "UPDATE events SET run = 2 WHERE run = 3",
    )

    refuses(store, RUN)
    refuses(store, OTHER)


def test_two_events_of_one_run_that_were_swapped_are_found_out(store: SqliteStore, path: Path) -> None:
    start(store, count=2)

    edit(
        path,
        "UPDATE events SET seq = 3 WHERE run = 1 AND seq = 1",
        "UPDATE events SET seq = 1 WHERE run = 1 AND seq = 2",
        "UPDATE events SET seq = 2 WHERE run = 1 AND seq = 3",
    )

    refuses(store)


def test_reading_a_page_of_events_finds_damage_too(store: SqliteStore, path: Path) -> None:
    start(store, count=5)
    edit(path, "UPDATE events SET at = 1 WHERE run = 1 AND seq = 4")

    assert list(go(store.log.events(RUN, after=Seq(0), limit=3))) == events(1, 3)
    with pytest.raises(Corrupt, match="Event 4"):
        go(store.log.events(RUN, after=Seq(3), limit=3))


def test_a_damaged_run_does_not_stop_others_from_writing(store: SqliteStore, path: Path) -> None:
    start(store, count=5)
    start(store, OTHER)
    edit(path, "UPDATE events SET body = '{}' WHERE run = 1")
    refuses(store)

    assert commit(store, append(OTHER)) == [Outcome.ACCEPTED]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshots SET body = x'00'",
        "UPDATE snapshots SET seq = 1",
        "UPDATE snapshots SET crc = 0",
        "DELETE FROM snapshots",
    ],
)
def test_a_damaged_snapshot_is_no_damage(store: SqliteStore, path: Path, statement: str) -> None:
    start(store)
    commit(store, append(count=3, snapshot=Snapshot(Seq(2), 1, b"state")))

    edit(path, statement)

    loaded = load(store)
    assert (loaded.snapshot, loaded.events) == (None, events(1, 3))


def test_a_damaged_blob_is_found_out(store: SqliteStore, path: Path) -> None:
    digest = go(store.blobs.put(b"hello"))

    edit(path, "UPDATE blobs SET data = CAST('hullo' AS BLOB)")

    with pytest.raises(Corrupt, match=digest):
        go(store.blobs.get(digest))


def flipped(path: Path, place: int, bit: int) -> Callable[[], None]:
    """Flip a bit of the file; what is returned flips it back."""

    def flip() -> None:
        with path.open("r+b") as file:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ (1 << bit)]))

    flip()
    return flip


def outcome(path: Path, uid: str) -> str:
    """What a process that opens the file now makes of a run."""
    store = SqliteStore(f"sqlite:///{path}", durability="fast")
    go(store.open())
    try:
        found = load(store, uid)
        return "same" if [one.body for one in found.events] == BODIES else "different"
    except Corrupt:
        return "corrupt"
    finally:
        go(store.close())


BODIES = [b'{"text":"%d %s"}' % (number, MARK) for number in range(1, 4)]


def test_every_flipped_bit_of_an_event_is_found_out_and_others_go_on(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", durability="fast")
    go(store.open())
    for uid in (RUN, OTHER):
        start(store, uid)
        marked = [event(seq, body) for seq, body in enumerate(BODIES, 1)]
        commit(store, append(uid, events=marked))
    go(store.close())
    content = path.read_bytes()
    # The whole of a record: its header, its numbers, its body and its checksum. A page is filled from its end, so the
    # last one in the file belongs to the first run.
    first = content.rindex(BODIES[1]) - 12
    places = range(first, first + 12 + len(BODIES[1]) + 4, 3)

    seen = set()
    for number, place in enumerate(places):
        undo = flipped(path, place, number % 8)
        seen.add((outcome(path, RUN), outcome(path, OTHER)))
        undo()

    # A flip before the record may hit a neighbour, or nothing that is read.
    assert seen <= {("corrupt", "same"), ("same", "same")}
    assert ("corrupt", "same") in seen
    assert outcome(path, RUN) == "same"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE inbox SET body = '{\"n\":7}' WHERE run = 1",
        "UPDATE inbox SET at = at + 1 WHERE run = 1",
        "UPDATE inbox SET id = 'other' WHERE run = 1",
        "UPDATE inbox SET key = 'k' WHERE run = 1",
        "UPDATE inbox SET crc = crc + 1 WHERE run = 1",
        "UPDATE inbox SET body = CAST(x'ff' AS TEXT) WHERE run = 1",
    ],
)
def test_edited_mail_is_refused_for_its_run_alone(store: SqliteStore, path: Path, statement: str) -> None:
    for uid in (RUN, OTHER):
        start(store, uid)
        send(store, mail(to=uid))

    edit(path, statement)

    assert "Mail" in refuses(store)
    with pytest.raises(Corrupt, match="Mail"):
        go(store.log.inbox(RUN))
    assert [one.id for one in load(store, OTHER).inbox] == ["m1"]
    inboxes = go(store.inboxes.waiting(HERE, limit=10))
    assert isinstance(inboxes[RUN], Corrupt)
    assert waiting(store) == {OTHER: ["m1"]}


# --- the file itself --------------------------------------------------------------------------------------------------


def test_a_commit_into_a_file_that_was_deleted_is_not_acknowledged(store: SqliteStore, path: Path) -> None:
    start(store)
    path.unlink()

    with pytest.raises(Unavailable, match="deleted or replaced") as caught:
        commit(store, append())
    assert caught.value.code == "store.file_gone"
    for ask in (lambda: changed(store), lambda: store.directory.row(RUN), lambda: store.log.send([mail()])):
        with pytest.raises(Unavailable, match="deleted or replaced"):
            go(ask())


def test_a_commit_into_a_file_that_was_replaced_is_not_acknowledged(store: SqliteStore, path: Path) -> None:
    start(store)
    path.rename(path.with_name("moved.db"))
    path.write_bytes(b"")

    with pytest.raises(Unavailable, match="deleted or replaced"):
        commit(store, append(), append(OTHER))


def test_a_file_that_was_moved_back_is_used_again(store: SqliteStore, path: Path) -> None:
    start(store)
    moved = path.rename(path.with_name("moved.db"))
    with pytest.raises(Unavailable):
        commit(store, append())
    moved.rename(path)

    assert load(store).row.seq in (1, 2)  # the commit that was not acknowledged is there, or not


def test_without_sync_a_deleted_file_is_noticed_soon(tmp_path: Path) -> None:
    path = tmp_path / "fast.db"
    store = SqliteStore(f"sqlite:///{path}", durability="fast")
    go(store.open())
    start(store)
    path.unlink()

    with pytest.raises(Unavailable, match="deleted or replaced"):
        while True:
            go(store.log.send([mail()]))
            time.sleep(CHECK_S / 10)
    go(store.close())
