"""A SQLite store in a folder of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weft.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{path}")
    asyncio.run(opened.open())
    yield opened
    asyncio.run(opened.close())
