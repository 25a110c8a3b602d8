"""Loss of power, as a file shows it: whatever is wrong at the end of the WAL, the acknowledged prefix is there.

A cut cannot show a missing ``fsync``; that the settings hold is tested where the file is opened.
"""

import random
import shutil
from itertools import count
from pathlib import Path

import apsw
import pytest

from tests import scale
from tests.contract.kit import append, commit, events, go, load, mail, new, row, send, start
from weft.ports.store import Outcome
from weft.stores.sqlite import SqliteStore

FRAME = 24 + 4096
WAL_HEADER = 32
COMMITS = 16


class Recording:
    """A database, its WAL, and how long the WAL was when each commit was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "weft.db"
        self.ends: list[int] = []
        store = SqliteStore(f"sqlite:///{self.path}")
        go(store.open())
        start(store)
        store.log._writer._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self.base = self.path.read_bytes()
        wal = self.path.with_name("weft.db-wal")
        for number in range(COMMITS):
            self._commit(store, number)
            self.ends.append(wal.stat().st_size)
        self.wal = wal.read_bytes()
        go(store.close())
        self._numbers = count()

    @staticmethod
    def _commit(store: SqliteStore, number: int) -> None:
        """Event ``number + 1``, written in every way there is."""
        match number % 4:
            case 0:
                batch = [append(seq=number, attributes={"n": number}, children=[new(f"kid {number}", owner=None)])]
            case 1:
                send(store, mail(f"m{number}"))
                batch = [append(seq=number, taken=[f"m{number}"])]
            case 2:
                batch = [append(seq=number), append(f"kid {number}", create=new(f"kid {number}"))]
            case _:
                batch = [append(seq=number)]
        assert set(commit(store, *batch)) == {Outcome.ACCEPTED}

    def acknowledged(self, size: int) -> int:
        return sum(end <= size for end in self.ends)

    def reopened(self, folder: Path, wal: bytes) -> Path:
        """What the next process finds after a loss of power."""
        path = folder / f"{next(self._numbers)}.db"
        path.write_bytes(self.base)
        path.with_name(f"{path.name}-wal").write_bytes(wal)
        return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(tmp_path_factory.mktemp("recording"))


def found(path: Path) -> tuple[int, list[int], str]:
    """The row's number, the numbers of the events, and what SQLite thinks of the file."""
    connection = apsw.Connection(str(path))
    seq = connection.execute("SELECT seq FROM runs WHERE uid = 'run-1'").get
    numbers = [number for (number,) in connection.execute("SELECT seq FROM events WHERE run = 1 ORDER BY seq")]
    health = connection.pragma("integrity_check")
    connection.close()
    return seq, numbers, health


def cuts(recording: Recording) -> list[int]:
    size = len(recording.wal)
    frames = range(WAL_HEADER, size + 1, FRAME)
    around = {frame + shift for frame in frames for shift in (-1, 0, 1)}
    return sorted({cut for cut in around | set(range(0, size, 512)) if cut <= size})


@pytest.mark.proof
def test_a_wal_cut_anywhere_holds_exactly_the_acknowledged_prefix(recording: Recording, tmp_path: Path) -> None:
    wrong = []
    for cut in cuts(recording):
        path = recording.reopened(tmp_path, recording.wal[:cut])
        seq, numbers, health = found(path)
        path.unlink()
        expected = recording.acknowledged(cut)
        if (seq, numbers, health) != (expected, list(range(1, expected + 1)), "ok"):
            wrong.append((cut, expected, seq, numbers, health))

    assert len(cuts(recording)) > 500
    assert not wrong


@pytest.mark.parametrize("seed", scale.first(1, range(3)))
def test_garbage_at_the_end_of_the_wal_is_not_taken_for_a_commit(
    recording: Recording, tmp_path: Path, seed: int
) -> None:
    """Sectors that were never synced may hold anything: zeros, what was there before, noise."""
    noise = random.Random(seed)
    wrong = []
    for number, end in enumerate(recording.ends[:-1], 1):
        rest = len(recording.wal) - end
        for tail in (bytes(rest), noise.randbytes(rest), recording.wal[:rest]):
            path = recording.reopened(tmp_path, recording.wal[:end] + tail)
            if found(path) != (number, list(range(1, number + 1)), "ok"):
                wrong.append((number, found(path)))
            path.unlink()

    assert not wrong


def test_the_store_itself_goes_on_from_the_prefix(recording: Recording, tmp_path: Path) -> None:
    for cut in (recording.ends[4], recording.ends[9] - 1, recording.ends[12] + FRAME // 2):
        path = recording.reopened(tmp_path, recording.wal[:cut])
        expected = recording.acknowledged(cut)
        store = SqliteStore(f"sqlite:///{path}")
        go(store.open())

        assert load(store).events == events(1, expected)
        assert commit(store, append(seq=expected)) == [Outcome.ACCEPTED]
        assert row(store).seq == expected + 1
        go(store.close())


def test_a_backup_is_a_copy_of_the_file_and_its_wal(recording: Recording, tmp_path: Path) -> None:
    path = recording.reopened(tmp_path, recording.wal)
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")

    assert found(copy)[0] == COMMITS


def test_a_blob_is_there_wherever_the_commit_after_it_is(tmp_path: Path) -> None:
    """Blobs are not synced by themselves: the commit that refers to one syncs both."""
    base = SqliteStore(f"sqlite:///{tmp_path / 'weft.db'}")
    go(base.open())
    start(base)
    base.log._writer._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    file = (tmp_path / "weft.db").read_bytes()
    go(base.blobs.put(b"one turn"))
    commit(base, append(seq=0))
    wal = (tmp_path / "weft.db-wal").read_bytes()
    go(base.close())
    seen = set()
    for cut in range(WAL_HEADER, len(wal) + 1, FRAME):
        path = tmp_path / "cut.db"
        path.write_bytes(file)
        path.with_name("cut.db-wal").write_bytes(wal[:cut])
        connection = apsw.Connection(str(path))
        blobs = connection.execute("SELECT count(*) FROM blobs").get
        seen.add((connection.execute("SELECT seq FROM runs WHERE uid = 'run-1'").get, blobs))
        connection.close()

    assert seen == {(0, 0), (0, 1), (1, 1)}
