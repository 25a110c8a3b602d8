"""Several processes on one file: they take turns, they are killed, and what they said was durable is there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from tests import scale
from tests.contract.kit import FLOW, HERE, changed, claim, events, go, load, new, row, start
from weft.core.ids import HostId, Millis, RunUid
from weft.errors import Unavailable
from weft.stores.sqlite import SqliteStore

CHILD = HostId("child")


@contextmanager
def child(*arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """A program of ``children.py``, killed at the end if it still runs."""
    command = [sys.executable, "-m", "tests.stores.children", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_healthy(path: Path) -> bool:
    connection = apsw.Connection(str(path))
    health = connection.pragma("integrity_check")
    connection.close()
    return bool(health == "ok")


@pytest.mark.parametrize("acknowledged", scale.first(2, [1, 60, 2, 7, 400]))
def test_a_killed_writer_has_kept_its_word(path: Path, acknowledged: int) -> None:
    with child("commit_for_ever", path, "run-1") as process:
        for _ in range(acknowledged):
            line(process)
        process.kill()
        assert process.stdout is not None
        said = [2 * acknowledged, *map(int, re.findall(r"^(\d+)\n", process.stdout.read(), re.MULTILINE))]

    store = SqliteStore(f"sqlite:///{path}")
    go(store.open())
    found = load(store)
    # The last commit may have happened without having been told.
    assert said[-1] <= found.row.seq <= said[-1] + 2
    assert list(found.events) == events(1, found.row.seq)
    go(store.close())
    assert is_healthy(path)


def test_two_processes_write_at_the_same_time(path: Path) -> None:
    count = 150
    with child("commit_some", path, "run-a", count) as a, child("commit_some", path, "run-b", count) as b:
        for process in (a, b):
            assert line(process) == "ready"
        for process in (a, b):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert (line(a), line(b)) == ("done", "done")

    store = SqliteStore(f"sqlite:///{path}")
    go(store.open())
    for uid in ("run-a", "run-b"):
        assert list(load(store, uid).events) == events(1, count)
    go(store.close())
    assert is_healthy(path)


def test_a_full_disk_is_said_plainly_loses_nothing_and_heals(path: Path) -> None:
    with child("fill_the_disk", path, 600_000) as process:
        said, *again, kept, healed = [line(process) for _ in range(6)]

    _, seq, kind, has_hint = said.split()
    assert (kind, has_hint, again) == ("Full", "True", ["still full"] * 3)
    assert int(seq) > 0
    assert kept == f"kept {seq} {seq}"
    assert healed == "accepted"
    assert is_healthy(path)


def test_the_death_of_a_process_is_seen_at_once(store: SqliteStore, path: Path) -> None:
    with child("host_a_run", path, CHILD) as process:
        assert line(process) == "ready"
        assert list(go(store.hosts.find_dead(monotonic=0.0))) == []
        assert lock_files(path) == ["child.lock"]
        process.kill()
        process.wait()

        assert list(go(store.hosts.find_dead(monotonic=0.0))) == [CHILD]


def test_what_a_dead_host_left_is_removed_when_its_runs_are_gone(store: SqliteStore, path: Path) -> None:
    with child("host_a_run", path, CHILD) as process:
        line(process)
        process.kill()
        process.wait()
    assert list(go(store.hosts.find_dead(monotonic=0.0))) == [CHILD]
    assert lock_files(path) == ["child.lock"]

    (left,) = go(store.directory.claimable([FLOW], dead=[CHILD], now=Millis(0), limit=9))
    assert claim(store, left.uid, epoch=left.epoch)
    go(store.hosts.join(HERE, lease_ms=1_000))

    assert list(go(store.hosts.find_dead(monotonic=0.0))) == [CHILD]
    assert list(go(store.hosts.find_dead(monotonic=0.0))) == []
    assert lock_files(path) == ["here.lock"]


def test_a_paused_process_holds_its_lock_and_is_judged_by_its_beats(store: SqliteStore, path: Path) -> None:
    with child("host_a_run", path, CHILD) as process:
        line(process)

        assert list(go(store.hosts.find_dead(monotonic=0.0))) == []
        assert list(go(store.hosts.find_dead(monotonic=59.0))) == []
        assert list(go(store.hosts.find_dead(monotonic=60.0))) == [CHILD]
        assert lock_files(path) == ["child.lock"]


def test_a_host_that_leaves_takes_its_lock_file_along(store: SqliteStore, path: Path) -> None:
    go(store.hosts.join(HERE, lease_ms=1_000))
    assert lock_files(path) == ["here.lock"]

    go(store.hosts.leave(HERE))

    assert not path.with_name("weft.db-hosts").exists()


def test_a_name_that_is_in_use_is_refused(store: SqliteStore, path: Path) -> None:
    with child("host_a_run", path, CHILD) as process:
        line(process)

        with pytest.raises(Unavailable, match="child") as caught:
            go(store.hosts.join(CHILD, lease_ms=1_000))

    assert caught.value.hint


def test_a_name_of_a_dead_host_can_be_used_again(store: SqliteStore, path: Path) -> None:
    with child("host_a_run", path, CHILD) as process:
        line(process)
        process.kill()
        process.wait()

    go(store.hosts.join(CHILD, lease_ms=1_000))

    assert list(go(store.hosts.find_dead(monotonic=0.0))) == []


def test_a_host_may_have_any_name(store: SqliteStore, path: Path) -> None:
    name = HostId("../büro 7/%2e")

    go(store.hosts.join(name, lease_ms=1_000))

    (file,) = lock_files(path)
    assert "/" not in file
    go(store.hosts.leave(name))


def test_only_foreign_writes_count_as_changes(store: SqliteStore, path: Path) -> None:
    go(changed(store))
    start(store)
    assert not go(changed(store))

    with child("host_a_run", path, CHILD) as process:
        line(process)

    assert go(changed(store))
    assert not go(changed(store))
    assert row(store, RunUid("run of child")).owner == CHILD


def test_a_run_of_another_process_is_claimed_once(store: SqliteStore, path: Path) -> None:
    """Two observers of the same death: the epoch lets one of them win."""
    other = SqliteStore(f"sqlite:///{path}")
    go(other.open())
    go(store.log.create([new("orphan", owner=None, start=b"1")]))

    won = [claim(one, "orphan", host=HostId(name)) for one, name in ((store, "a"), (other, "b"))]

    assert [len(rows) for rows in won] == [1, 0]
    go(other.close())


def lock_files(path: Path) -> list[str]:
    return sorted(one.name for one in path.with_name("weft.db-hosts").glob("*"))
