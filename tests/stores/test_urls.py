"""URLs: each names one store, or says what to write instead."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.kit import go, row, start
from weft.errors import UsageError
from weft.stores import open_store
from weft.stores.memory import MemoryStore
from weft.stores.sqlite import SqliteStore


def test_memory_and_sqlite_are_there() -> None:
    assert isinstance(open_store("memory://"), MemoryStore)
    assert isinstance(open_store("sqlite:///weft.db"), SqliteStore)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///weft.db"])
def test_a_store_keeps_the_name_that_users_gave_it(url: str) -> None:
    assert open_store(url).url == url


def test_naming_a_store_touches_no_file(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/weft.db")

    assert list(tmp_path.iterdir()) == []


def test_three_slashes_are_relative_and_four_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = open_store("sqlite:///some.db")
    go(relative.open())
    start(relative)
    go(relative.close())

    absolute = open_store(f"sqlite:///{tmp_path}/some.db")
    assert absolute.url.startswith("sqlite:////")
    go(absolute.open())
    assert row(absolute).uid == "run-1"
    go(absolute.close())


@pytest.mark.parametrize("url", ["postgresql://localhost/weft", "postgres://localhost/weft"])
def test_postgres_is_there_and_not_asked_yet(url: str) -> None:
    store = open_store(url)

    assert (type(store).__name__, store.url) == ("PostgresStore", url)


def test_without_its_library_postgres_says_what_to_install() -> None:
    """In a process of its own, where the library cannot be imported."""
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "import weft.stores, weft.errors\n"
        "try:\n    weft.stores.open_store('postgresql://localhost/weft')\n"
        "except weft.errors.UsageError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert 'pip install "weft[postgres]"' in done.stdout


@pytest.mark.parametrize("url", ["redis://localhost", "rediss://x"])
def test_a_redis_server_is_no_store_and_stands_beside_one(url: str) -> None:
    with pytest.raises(UsageError, match="keeps no runs") as caught:
        open_store(url)

    assert "sqlite:///" in caught.value.hint
    assert "redis=" in caught.value.hint


@pytest.mark.parametrize("url", ["", "weft.db", "mysql://x", "sqlite", "://x", "http://example.org"])
def test_anything_else_is_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url)

    assert "sqlite:///weft.db" in caught.value.hint


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///", "sqlite:///file:x?mode=memory"])
def test_a_database_in_memory_is_another_store(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url)

    assert "memory://" in caught.value.hint


@pytest.mark.parametrize("url", ["sqlite://weft.db", "sqlite://localhost/weft.db"])
def test_two_slashes_are_one_too_few(url: str) -> None:
    with pytest.raises(UsageError, match="does not name a file"):
        open_store(url)


def test_durability_is_full_or_fast() -> None:
    with pytest.raises(UsageError) as caught:
        open_store("sqlite:///weft.db", durability="fastest")

    assert '"fast"' in caught.value.hint
