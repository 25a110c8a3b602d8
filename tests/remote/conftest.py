"""A server over a SQLite store with runs of every kind, and the command line spoken to in both ways."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.remote.shop import STEPS, shop
from tests.server.kit import Server, serving
from weft.cli import main

SECONDS_MAX = 60


class Said(NamedTuple):
    code: int
    out: str
    err: str


class BothWays:
    """The command line beside the store, and through the server that has it."""

    def __init__(self, server: Server, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.server = server
        self.folder = folder
        self.store = f"sqlite:///{folder}/weft.db"
        self._capsys = capsys

    def say(self, url: str, *words: str) -> Said:
        self._capsys.readouterr()
        with contextlib.chdir(self.folder):
            code = main([*words, "--url", url])
        return Said(code, *self._capsys.readouterr())

    def here(self, *words: str) -> Said:
        """Beside the store."""
        return self.say(self.store, *words)

    def there(self, *words: str) -> Said:
        """Through the server."""
        return self.say(self.server.url, *words)

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait until a host has acted."""
        end = time.monotonic() + SECONDS_MAX
        while not happened():
            assert time.monotonic() < end
            time.sleep(0.01)

    def plain(self, said: Said) -> Said:
        """What was said, without what differs from one moment to the next, or names the way."""
        texts = []
        for text in (said.out, said.err):
            plain = text.replace(self.store, "STORE").replace(self.server.url, "STORE")
            plain = re.sub(r'"(silent_ms|lease_ms)": \d+', r'"\1": 0', plain)
            plain = re.sub(r"\b\d+(\.\d+)?(ms|s|m|h)\b", "AGE", plain)
            plain = re.sub(r"just now|\b\d+ (second|minute)s? ago", "AGO", plain)
            texts.append(re.sub(r" +", " ", plain))
        return Said(said.code, *texts)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving(shop(f"sqlite:///{place}/weft.db")) as running:
        running.start("order", "order-1", order_id="o-1", n=2)
        running.start("order", "order-2", order_id="o-2", n=3)
        running.start("doomed", "doomed-1", order_id="o-3")
        running.start("family", "family-1")
        running.start("large", "large-1", letters=100_000)
        running.start("packing", "packing-1", n=1)
        running.start("stamping", "stamping-1")
        for run in ("stamping-1", "order-1", "order-2", "doomed-1", "family-1", "large-1", "packing-1"):
            running.result(run)
        # A host writes what steps print a moment later, but before it answers this.
        assert running.get("/api/v1/runs/order-1/logs").json["lines"]
        for run in ("p-1", "p-2"):
            running.start("patient", run)
        running.post("/api/v1/runs/p-2/messages", {"name": "quote", "body": 7})
        running.until("p-2", "ask_opened")
        running.start("calm", "calm-1", who="ann")
        (place / "steps.yaml").write_text(STEPS)
        yield running


@pytest.fixture
def both(server: Server, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> BothWays:
    for name in ("WEFT_KEY", "WEFT_KEY_FILE", "WEFT_URL", "WEFT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return BothWays(server, place, capsys)
