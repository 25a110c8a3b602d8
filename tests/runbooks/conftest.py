"""A site in an empty folder; its hosts end with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runbooks.kit import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Site]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    made = Site(tmp_path, capsys)
    try:
        yield made
    finally:
        made.close()
