"""``weft backup`` and ``weft restore``: a store of one moment, checked, and never written over another."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Weft, hosting
from weft.cli import main


def test_what_was_backed_up_comes_back(over: Weft, folder: Path) -> None:
    before = over("list", "--json").out
    said = over("backup", "safe.db", "--json").json()
    assert isinstance(said, dict)
    assert (said["runs"], said["open_runs"]) == (4, 0)
    assert said["sha256"] == hashlib.sha256((folder / "safe.db").read_bytes()).hexdigest()
    assert (folder / "safe.db.sha256").read_text() == f"{said['sha256']}  safe.db\n"
    (folder / "weft.db").unlink()
    restored = over("restore", "safe.db")
    assert restored.code == 0, restored.err
    assert restored.out == f"{folder}/weft.db\n"
    assert "4 runs came back, 0 of them open, with " in restored.err
    assert "perform these steps again, with the same keys" in restored.err
    assert over("list", "--json").out == before


def test_a_backup_is_one_private_file(over: Weft, folder: Path) -> None:
    over("backup", "safe.db")
    assert stat.S_IMODE((folder / "safe.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "safe.db.sha256").stat().st_mode) == 0o600
    assert sorted(one.name for one in folder.iterdir() if "safe" in one.name) == ["safe.db", "safe.db.sha256"]


def test_a_large_value_is_in_the_backup(weft: Weft, folder: Path) -> None:
    (folder / "big.py").write_text(
        "import weft\n\napp = weft.App()\n\n\n@app.workflow\nasync def big() -> str:\n    return 'x' * 100_000\n"
    )
    weft("run", "big.py", "big", "--id", "big-1")
    weft("backup", "safe.db")
    weft("restore", "safe.db", "--url", "sqlite:///again.db")
    shown = weft("show", "big-1", "--url", "sqlite:///again.db", "--json").json()
    assert isinstance(shown, dict)
    assert shown["result"] == "x" * 100_000


@pytest.mark.proof
def test_hosts_write_while_the_backup_is_made_and_the_restored_run_goes_on(waiting: Weft, folder: Path) -> None:
    with hosting(folder):
        waiting("start", "patient", "--id", "p-2")
        assert waiting("backup", "safe.db").code == 0
        waiting("send", "p-1", "quote", "1")
    waiting("restore", "safe.db", "--url", "sqlite:///again.db")
    # The old host is not taken to be alive, so nobody waits for its lease.
    assert waiting("hosts", "--json", "--url", "sqlite:///again.db").json() == {
        "store": "sqlite:///again.db",
        "hosts": [],
    }
    for run in ("p-1", "p-2"):
        assert waiting("show", run, "--json", "--url", "sqlite:///again.db").code == 0


def test_nothing_is_overwritten(over: Weft, folder: Path) -> None:
    (folder / "safe.db").write_text("mine")
    said = over("backup", "safe.db")
    assert said.code == 1
    assert "exists already, and was not changed" in said.err
    assert "weft help backup.file_exists" in said.err
    assert (folder / "safe.db").read_text() == "mine"
    over("backup", "other.db")
    before = (folder / "weft.db").read_bytes()
    said = over("restore", "other.db")
    assert said.code == 1
    assert "weft.db exists, and was not changed" in said.err
    assert (folder / "weft.db").read_bytes() == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_what_is_left_of_an_old_store_is_not_mixed_with_the_new(over: Weft, folder: Path, suffix: str) -> None:
    over("backup", "safe.db")
    (folder / "weft.db").unlink()
    (folder / f"weft.db{suffix}").write_bytes(b"old")
    said = over("restore", "safe.db")
    assert said.code == 1
    assert f"weft.db{suffix} exists" in said.err


def test_a_store_that_is_open_is_not_restored_over(waiting: Weft, folder: Path) -> None:
    waiting("backup", "safe.db")
    with hosting(folder):
        for file in folder.glob("weft.db*"):
            if file.is_file():
                file.unlink()
        said = waiting("restore", "safe.db")
        assert said.code == 1
        assert "A process still works on" in said.err
        assert not (folder / "weft.db").exists()


@pytest.mark.proof
def test_an_old_host_cannot_write_to_the_restored_store(waiting: Weft, folder: Path) -> None:
    """A host that was frozen while its store was lost and restored at the same path."""
    waiting("backup", "safe.db")
    with hosting(folder) as host:
        os.kill(host.pid, signal.SIGSTOP)
        for file in (*folder.glob("weft.db*"), *folder.glob("weft.db-hosts/*")):
            if file.is_file():
                file.unlink()
        assert waiting("restore", "safe.db").code == 0
        before = (folder / "weft.db").read_bytes()
        os.kill(host.pid, signal.SIGCONT)
        assert host.stdin is not None
        host.stdin.close()
        host.wait(200)
        assert (folder / "weft.db").read_bytes() == before


def test_a_changed_backup_is_refused(over: Weft, folder: Path) -> None:
    over("backup", "safe.db")
    data = bytearray((folder / "safe.db").read_bytes())
    data[-1] ^= 1
    (folder / "safe.db").write_bytes(data)
    said = over("restore", "safe.db", "--url", "sqlite:///again.db")
    assert said.code == 1
    assert "is not the file that was backed up" in said.err
    assert not (folder / "again.db").exists()
    assert not list(folder.glob(".*.part*"))


def test_a_damaged_backup_is_refused_without_its_digest_too(over: Weft, folder: Path) -> None:
    over("backup", "safe.db")
    (folder / "safe.db.sha256").unlink()
    data = bytearray((folder / "safe.db").read_bytes())
    data[4096 : 4096 * 8] = b"\xff" * (4096 * 7)
    (folder / "safe.db").write_bytes(data)
    said = over("restore", "safe.db", "--url", "sqlite:///again.db")
    assert said.code == 1
    assert "damaged" in said.err
    assert not (folder / "again.db").exists()


def test_a_missing_digest_is_said(over: Weft, folder: Path) -> None:
    over("backup", "safe.db")
    (folder / "safe.db.sha256").unlink()
    said = over("restore", "safe.db", "--url", "sqlite:///again.db")
    assert said.code == 0
    assert "safe.db.sha256 is missing" in said.err


def test_a_file_of_another_program_is_no_backup(weft: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "notes.db")
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    said = weft("restore", "notes.db")
    assert said.code == 1
    assert "is not a store of Weft" in said.err
    assert not (folder / "weft.db").exists()
    assert weft("backup", "x.db", "--url", "sqlite:///notes.db").code == 1


def test_there_is_nothing_to_back_up_or_restore(weft: Weft, folder: Path) -> None:
    for words, said in ((["backup", "safe.db"], "There is no store"), (["restore", "safe.db"], "There is no backup")):
        refused = weft(*words)
        assert said in refused.err
        assert "run.not_found" not in refused.err
    assert not list(folder.glob("*.db*"))


def test_a_limit_on_the_size_of_files_is_named(over: Weft, folder: Path, executable: str) -> None:
    """It is that of the shell (``ulimit -f``) or of the service."""
    command = f"ulimit -f 8 && exec {shlex.quote(executable)} backup safe.db"
    said = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "There is no room left to write" in said.stderr
    assert not [one.name for one in folder.iterdir() if "safe" in one.name]


def test_a_disk_without_room_leaves_nothing_behind(over: Weft, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from weft.stores.sqlite import backup

    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup, "_sync_and_digest", full)
    said = over("backup", "safe.db")
    assert said.code == 1
    assert "There is no room left to write" in said.err
    assert not list(folder.glob("*safe*"))


def test_postgres_has_its_own_tools(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("backup", "restore"):
        assert main([verb, "shop.dump", "--url", "postgresql://shop:secret@db.internal/shop"]) == 2
        said = capsys.readouterr().err
        assert "pg_dump --format=custom --file=shop.dump 'postgresql://shop:***@db.internal/shop'" in said
        assert "pg_restore --exit-on-error" in said
        assert "secret" not in said
