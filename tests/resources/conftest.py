"""An app of each test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft


@pytest.fixture
def app() -> Iterator[weft.App]:
    made = weft.App("memory://")
    yield made
    made.sync.close()


@pytest.fixture
def said() -> list[str]:
    return []
