"""`weft models`: which models there are, until when they are held, and whether they answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.scripted_server import Say, ScriptedServer, refused, scripted, text
from tests.cli.conftest import Weft
from weft.runtime.clock import SystemClock
from weft.runtime.held_models import HeldModels
from weft.stores import open_store

APP = """
import weft

app = weft.App()
app.model("fast", url="{url}", model="gpt-5-mini", prices=weft.Prices("0.25", "2.00"), fallback=["local"],
          key=weft.Secret("env:PING_KEY"))
app.model("local", url="{url}")
"""


@contextmanager
def served(*answers: Say) -> Iterator[ScriptedServer]:
    """Serve a script in another thread, since a command has an event loop of its own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    found: list[ScriptedServer] = []
    done = asyncio.Event()

    async def serve() -> None:
        async with scripted(*answers) as server:
            found.append(server)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(30)
        loop.close()


def test_models_are_listed_with_prices_and_without_keys(weft: Weft, folder: Path) -> None:
    (folder / "bots.py").write_text(APP.format(url="https://api.example.com/v1"))

    shown = weft("models", "--app", "bots.py")
    assert "gpt-5-mini" in shown.out
    assert "0.25 / 2.00 USD" in shown.out
    assert "PING_KEY" not in shown.out

    listed = weft("models", "list", "--app", "bots.py", "--json").json()["models"]  # type: ignore[index]
    assert [one["name"] for one in listed] == ["fast", "local"]
    assert listed[0]["fallback"] == ["local"]


def test_a_model_that_is_held_says_until_when(weft: Weft, folder: Path) -> None:
    url = f"sqlite:///{folder}/held.db"

    async def hold() -> None:
        store = open_store(url)
        await store.open()
        await HeldModels(store.memos, SystemClock(), lambda: ["fast"]).hold("fast", 3_600_000)
        await store.close()

    asyncio.run(hold())
    (folder / "bots.py").write_text(APP.format(url="https://api.example.com/v1"))

    assert "held until" in weft("models", "--app", "bots.py", "--url", url).out
    listed = weft("models", "--app", "bots.py", "--url", url, "--json").json()["models"]  # type: ignore[index]
    assert listed[0]["held_until"]
    assert listed[1]["held_until"] is None


def test_ping_asks_each_model_and_fails_if_one_does_not_answer(
    weft: Weft, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PING_KEY", "sk-ping-secret-12345")
    with served(text("ok"), refused(401, message="bad key sk-ping-secret-12345")) as server:
        (folder / "bots.py").write_text(APP.format(url=server.url))
        asked = weft("models", "ping", "--app", "bots.py")

    assert asked.code == 1
    assert "m-1, 120 tokens in, 30 out" in asked.out
    assert "model.rejected" in asked.out
    assert "sk-ping" not in asked.out


def test_ping_of_one_model(weft: Weft, folder: Path) -> None:
    with served(text("ok")) as server:
        (folder / "bots.py").write_text(APP.format(url=server.url))
        answered = weft("models", "ping", "local", "--app", "bots.py", "--json").json()["models"]  # type: ignore[index]

    assert [(one["name"], one["ok"], one["model"]) for one in answered] == [("local", True, "m-1")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ping", "lokal", "--app", "bots.py"], 'Did you mean "local"'),
        (["pong"], "is no command"),
        (["ping"], "No app is named"),
    ],
)
def test_what_cannot_be_asked_is_said(weft: Weft, folder: Path, words: list[str], said: str) -> None:
    (folder / "bots.py").write_text(APP.format(url="https://api.example.com/v1"))

    asked = weft("models", *words)
    assert asked.code != 0
    assert said in asked.out + asked.err


def test_without_models_it_says_how_to_declare_one(weft: Weft, folder: Path) -> None:
    assert "No model is declared" in weft("models").out
