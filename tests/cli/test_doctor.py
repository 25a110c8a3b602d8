"""``weft doctor`` on installations that are well, and on broken ones."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft
from weft.cli import machine_checks, store_checks

SECRET = "canary-7f3a"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("WEFT_"):
            monkeypatch.delenv(name)


def found(weft: Weft, *words: str) -> dict[str, list[dict[str, Any]]]:
    """What the doctor found, by check."""
    import msgspec

    said = weft("doctor", "--json", *words)
    document = msgspec.json.decode(said.out)
    assert document["ok"] == (said.code == 0)
    checks: dict[str, list[dict[str, Any]]] = {}
    for one in document["checks"]:
        checks.setdefault(one["check"], []).append(one)
    return checks


def states(checks: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {name: [one["state"] for one in ones] for name, ones in checks.items()}


def test_all_is_well(over: Weft) -> None:
    said = over("doctor")
    assert said.code == 0, said.out
    assert "fail" not in said.out.replace("0 failed", "")
    checks = found(over)
    assert {
        "python",
        "packages",
        "settings",
        "extras",
        "port",
        "files",
        "disk",
        "store",
        "clock",
        "hosts",
        "keys",
    } <= checks.keys()
    assert "4 runs, 0 open" in checks["store"][0]["text"]
    assert all(one["todo"] for ones in checks.values() for one in ones if one["state"] != "ok")


def test_there_is_no_store_yet(weft: Weft, folder: Path) -> None:
    assert "does not exist yet" in found(weft)["store"][0]["text"]
    assert not (folder / "weft.db").exists()


def test_runs_wait_for_a_host(waiting: Weft) -> None:
    hosts = found(waiting)["hosts"][0]
    assert hosts["state"] == "warn"
    assert hosts["todo"] == "Start one: weft serve app.py"


def test_a_setting_that_nothing_reads(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_BLOB", SECRET)
    monkeypatch.setenv("WEFT_WEBHOOK_SECRET", SECRET)
    checks = found(weft)
    assert checks["settings"][0] == {
        "check": "settings",
        "state": "warn",
        "text": "WEFT_BLOB is set, and Weft has no such setting",
        "todo": "Did you mean WEFT_BLOBS?",
    }
    assert SECRET not in weft("doctor").out
    assert SECRET not in weft("doctor", "--json").out


def test_a_password_is_not_printed(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_URL", f"postgresql://shop:{SECRET}@127.0.0.1:1/shop")
    said = weft("doctor")
    assert said.code == 1
    assert SECRET not in said.out + said.err
    assert "postgresql://shop:***@127.0.0.1:1/shop" in said.out


def test_a_project_file_with_a_wrong_setting(weft: Weft, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.weft]\nurll = "sqlite:///x.db"\n')
    checks = states(found(weft))
    assert checks["settings"] == ["fail"]
    assert "store" not in checks  # it fails for the same reason


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("WEFT_EVENTS_URL", f"hooks.example.com/{SECRET}", "WEFT_EVENTS_URL is not a URL"),
        ("WEFT_EVENTS_URL", "https://chat.example.com", "needs WEFT_EVENTS_SECRET"),
        ("WEFT_LOGS", "maybe", "WEFT_LOGS='maybe' is not one of on, off"),
        ("WEFT_PUBLIC_URL", "nowhere", "WEFT_PUBLIC_URL is 'nowhere', which is not a URL"),
        ("WEFT_JWT_ISSUER", "https://login.example.com", "also set WEFT_JWT_AUDIENCE, WEFT_JWT_JWKS"),
        ("WEFT_HTTP_ALLOW", "10.0.0.0/99", "is not an address, network or host name"),
        ("WEFT_HOT", "soon", "'soon' is not a policy"),
        ("WEFT_REDIS", "http://127.0.0.1", "is not the URL of a Redis server"),
    ],
)
def test_a_value_that_a_host_would_refuse(
    weft: Weft, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    checks = found(weft)
    assert SECRET not in weft("doctor").out
    assert said in " ".join(one["text"] for one in checks["settings"] if one["state"] == "fail")
    assert all(one["todo"] for one in checks["settings"] if one["state"] == "fail")


def test_a_redis_server_that_is_away(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REDIS", f"redis://:{SECRET}@127.0.0.1:1")
    (redis,) = found(weft)["Redis"]
    assert redis["state"] == "warn"
    assert "has not answered yet" in redis["text"]
    assert SECRET not in redis["text"]


def test_a_url_that_is_no_store(weft: Weft) -> None:
    (store,) = found(weft, "--url", "mysql://ann@db/shop")["store"]
    assert store["text"] == "'mysql://ann@db/shop' is not the URL of a store."


def test_a_file_that_is_no_database(weft: Weft, folder: Path) -> None:
    (folder / "weft.db").write_bytes(b"hello")
    (store,) = [one for one in found(weft)["store"] if one["state"] == "fail"]
    assert "is not a SQLite database" in store["text"]
    assert store["todo"] == "Name another file. This one was not changed."


def test_a_store_of_another_program(weft: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "weft.db")
    connection.execute("CREATE TABLE notes (text)")
    connection.close()
    store = found(weft)["store"][0]
    assert store["state"] == "fail"
    assert "the database of another program" in store["text"]
    assert store["todo"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_a_store_that_is_no_file(weft: Weft, folder: Path, make: Callable[[Path], None]) -> None:
    make(folder / "weft.db")
    (store,) = found(weft)["store"]
    assert (store["state"], store["text"]) == ("fail", f"{(folder / 'weft.db').resolve()} is not a file")


def test_a_url_that_cannot_be_read_keeps_its_password(weft: Weft) -> None:
    said = weft("doctor", "--url", f"postgresql://ann:{SECRET}@[::1")
    assert said.code == 1
    assert SECRET not in said.out + said.err


def test_a_damaged_store(weft: Weft, folder: Path) -> None:
    (folder / "weft.db").write_bytes(b"not a database at all, but long enough to be read as one" * 100)
    store = found(weft)["store"][0]
    assert store["state"] == "fail"
    assert "not a SQLite database" in store["text"] or "not a database" in store["text"]


def test_a_store_of_a_newer_weft(over: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "weft.db")
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    store = found(over)["store"][0]
    assert store["state"] == "fail"
    assert "newer Weft" in store["text"]


def test_a_store_that_lost_a_table(over: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "weft.db")
    connection.execute("DROP TABLE events")
    connection.close()
    store = found(over)["store"][0]
    assert store["state"] == "fail"
    assert "lacks events" in store["text"]
    assert "backup" in store["todo"]


def test_a_store_of_an_older_weft_is_not_changed(over: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "weft.db")
    connection.execute("PRAGMA user_version = 12")
    connection.close()
    before = (folder / "weft.db").read_bytes()
    store = found(over)["store"][0]
    assert store["state"] == "warn"
    assert "weft migrate" in store["todo"]
    assert (folder / "weft.db").read_bytes() == before


def test_a_directory_that_does_not_exist(weft: Weft) -> None:
    assert found(weft, "--url", "sqlite:///nowhere/weft.db")["files"][0]["state"] == "fail"


def test_a_file_that_cannot_be_written(over: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    # Root may write everywhere, so the system's answer is replaced.
    monkeypatch.setattr(os, "access", lambda path, mode: False if str(path).endswith("weft.db") else real(path, mode))
    files = found(over)["files"][0]
    assert files["state"] == "fail"
    assert "not readable and writable" in files["text"]


@pytest.mark.parametrize(("free", "state"), [(50 * 1024**2, "fail"), (500 * 1024**2, "warn"), (50 * 1024**3, "ok")])
def test_room_on_the_disk(over: Weft, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(0, 0, free))  # type: ignore[attr-defined]
    assert found(over)["disk"][-1]["state"] == state


def test_a_network_file_system(over: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_checks, "file_system_of", lambda _folder: "nfs4")
    assert found(over)["disk"][0]["state"] == "fail"


def test_the_file_system_is_that_of_the_longest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    place = str(tmp_path).replace(" ", r"\040")
    mounts.write_text(f"root / ext4 rw 0 0\nserver:/x {place} nfs4 rw 0 0\ntmpfs {place}/a\\040b tmpfs rw 0 0\n")
    (tmp_path / "a b").mkdir()
    assert store_checks.file_system_of(tmp_path, mounts) == "nfs4"
    assert store_checks.file_system_of(tmp_path / "a b", mounts) == "tmpfs"
    assert store_checks.file_system_of(Path("/"), mounts) == "ext4"


def test_a_port_that_another_program_has(weft: Weft) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = found(weft, "--port", str(taken.getsockname()[1]))["port"][0]
    assert port["state"] == "warn"
    assert "weft serve --port" in port["todo"]


def test_a_package_that_is_missing(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "requires", lambda _name: ["msgspec>=0.21", "not-there>=1"])
    packages = found(weft)["packages"][0]
    assert packages["state"] == "fail"
    assert "not-there" in packages["text"]


def test_an_extra_that_the_store_needs(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    real = machine_checks.find_spec
    monkeypatch.setattr(machine_checks, "find_spec", lambda name: None if name == "asyncpg" else real(name))
    extras = found(weft, "--url", "postgresql://shop@127.0.0.1:1/shop")["extras"][0]
    assert extras["state"] == "fail"
    assert extras["todo"] == 'pip install "weft[postgres]"'


def test_a_clock_that_went_back(over: Weft, folder: Path) -> None:
    connection = sqlite3.connect(folder / "weft.db")
    connection.execute("UPDATE runs SET updated_at = updated_at + 3600000")
    connection.commit()
    connection.close()
    assert found(over)["clock"][0]["state"] == "fail"


def test_a_check_that_breaks_does_not_end_the_others(over: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> list[str]:
        raise RuntimeError("boom")

    monkeypatch.setattr(machine_checks, "requires", broken)
    checks = found(over)
    assert checks["packages"][0]["state"] == "fail"
    assert checks["store"][0]["state"] == "ok"
