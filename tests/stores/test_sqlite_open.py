"""Opening a file: what is promised is read back, and what cannot be written is refused with a hint."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tests.contract.kit import HERE, go, row, start
from weft.errors import Corrupt, NewerSchema, StoreError, Unavailable, WrongSchema
from weft.stores.sqlite import SqliteStore
from weft.stores.sqlite.schema import APPLICATION_ID, NEWEST

NOBODY_UID = 65534


def opened(path: Path, durability: str = "full") -> SqliteStore:
    store = SqliteStore(f"sqlite:///{path}", durability=durability)
    go(store.open())
    return store


def refusal(path: Path, kind: type[StoreError]) -> StoreError:
    with pytest.raises(kind) as caught:
        opened(path)
    assert caught.value.hint
    assert str(path.name) in str(caught.value)
    return caught.value


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write everywhere; what is read-only shows only to somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY_UID)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shown() -> Iterator[Path]:
    """A folder that everybody may look into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("fast", 1)])
def test_every_connection_is_as_durable_as_asked(path: Path, durability: str, synchronous: int) -> None:
    store = opened(path, durability)
    connections = [store.log._writer._connection, store.log._reader._short, store.log._reader._long]

    found = [
        tuple(one.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"))
        for one in connections
    ]

    assert found == [("wal", synchronous, 1, 10_000)] * 3
    go(store.close())


def test_a_setting_that_does_not_hold_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.stores.sqlite.connection._configure_connection", lambda _connection, _durability: None)

    assert "journal_mode" in str(refusal(path, Unavailable))


def test_only_the_writer_can_write(store: SqliteStore) -> None:
    for connection in (store.log._reader._short, store.log._reader._long):
        with pytest.raises(apsw.ReadOnlyError):
            connection.execute("DELETE FROM runs")


def test_the_file_says_whose_it_is(path: Path) -> None:
    go(opened(path).close())

    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    plain.close()


def test_people_can_read_it_with_plain_sql(store: SqliteStore, path: Path) -> None:
    start(store, count=2, attributes={"customer": "anna"})

    with sqlite3.connect(path) as plain:
        query = "SELECT id, status, events.seq, json_extract(body, '$.n') FROM runs JOIN events ON run = runs.num"
        assert plain.execute(query).fetchall() == [("id of run-1", "running", 1, 1), ("id of run-1", "running", 2, 2)]
        assert plain.execute("SELECT name, value FROM attributes").fetchall() == [("customer", '"anna"')]
    plain.close()


def test_what_was_written_is_there_after_closing(path: Path) -> None:
    first = opened(path)
    start(first, count=3)
    go(first.close())

    again = opened(path)
    assert row(again).seq == 3
    go(again.close())


def test_closing_leaves_one_file(path: Path) -> None:
    store = opened(path)
    start(store)
    go(store.hosts.join(HERE, lease_ms=1_000))

    go(store.close())
    go(store.close())

    assert [one.name for one in path.parent.iterdir()] == ["weft.db"]


def test_opening_twice_is_opening_once(store: SqliteStore) -> None:
    start(store)

    go(store.open())

    assert row(store).seq == 0


def test_an_empty_file_is_a_new_database(path: Path) -> None:
    path.touch()

    go(opened(path).close())


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    go(opened(path).close())
    with sqlite3.connect(path) as plain:
        plain.execute(f"PRAGMA user_version = {NEWEST + 1}")
    plain.close()
    before = path.read_bytes()

    assert "newer Weft" in str(refusal(path, NewerSchema))
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"# Shopping list\n" * 500)

    refusal(path, Corrupt)

    assert path.read_bytes() == b"# Shopping list\n" * 500


def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as plain:
        plain.execute("CREATE TABLE photos (name TEXT)")
    plain.close()

    assert "another program" in str(refusal(path, Corrupt))

    with sqlite3.connect(path) as plain:
        assert plain.execute("SELECT name FROM sqlite_schema").fetchall() == [("photos",)]
    plain.close()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no directory") as caught:
        opened(tmp_path / "missing" / "weft.db")

    assert caught.value.hint


def test_a_directory_in_place_of_the_file_is_named(path: Path) -> None:
    path.mkdir()

    assert "is a directory" in str(refusal(path, Unavailable))


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Unavailable):
        opened(tmp_path / "file" / "weft.db")


def test_a_directory_that_cannot_be_written_is_refused(shown: Path) -> None:
    shown.chmod(0o555)

    with unprivileged():
        assert "writable" in refusal(shown / "weft.db", Unavailable).hint


def test_a_file_that_cannot_be_written_is_refused(shown: Path) -> None:
    path = shown / "weft.db"
    go(opened(path).close())
    path.chmod(0o444)
    shown.chmod(0o777)

    with unprivileged():
        assert "writable" in refusal(path, Unavailable).hint


def test_a_writable_file_in_a_directory_that_is_not_is_refused(shown: Path) -> None:
    path = shown / "weft.db"
    go(opened(path).close())
    path.chmod(0o666)
    shown.chmod(0o555)

    with unprivileged():
        assert "writable" in refusal(path, Unavailable).hint


def test_a_refused_file_holds_no_lock(path: Path) -> None:
    with sqlite3.connect(path) as plain:
        plain.execute("CREATE TABLE photos (name TEXT)")
    plain.close()
    refusal(path, Corrupt)

    with sqlite3.connect(path, timeout=0) as plain:
        plain.execute("INSERT INTO photos VALUES ('sea')")
    plain.close()


def test_a_symbolic_link_is_the_file_it_points_to(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real.db")
    through_link = opened(link)
    directly = opened(tmp_path / "real.db")

    go(through_link.hosts.join(HERE, lease_ms=60_000))

    assert (tmp_path / "real.db-hosts").is_dir()
    assert list(go(directly.hosts.find_dead(monotonic=0.0))) == []
    go(through_link.close())
    go(directly.close())


def test_two_who_open_a_new_file_at_once_make_one_schema(path: Path) -> None:
    stores = [SqliteStore(f"sqlite:///{path}") for _ in range(2)]
    for store in stores:
        go(store.open())

    start(stores[0])

    assert row(stores[1]).uid == "run-1"
    for store in stores:
        go(store.close())


def test_a_file_without_a_table_that_its_schema_has_says_what_to_do(path: Path) -> None:
    go(opened(path).close())
    with sqlite3.connect(path) as plain:
        plain.execute("DROP TABLE tasks")
    plain.close()
    store = opened(path)

    with pytest.raises(WrongSchema, match="no such table: tasks") as caught:
        go(store.tasks.limited_keys(limit=1))

    go(store.close())
    assert "backup" in caught.value.hint
