"""The programs of the documentation run as they stand."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agents.scripted_server import scripted, text, tool_calls

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for path in [*EXAMPLES.glob("a0*.py"), *EXAMPLES.glob("test_a0*.py")]:
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield tmp_path
    for name in ("a01_support", "a02_chat"):
        sys.modules.pop(name, None)


def at(app: Any, alias: str, url: str) -> None:
    """Let a model of a program be on a scripted server."""
    own = app.registered.models._own
    own[alias] = msgspec.structs.replace(own[alias], url=url)


def test_a01_goes_on_where_it_waited_for_finance(program: Path) -> None:
    a01 = importlib.import_module("a01_support")

    async def scenario() -> str:
        refund = tool_calls(("c1", "refund", '{"order_id":"o-1","cents":4200}'))
        async with scripted(refund, text("It is on its way.")) as provider:
            at(a01.app, "fast", provider.url)
            async with a01.app:  # it ends while finance is asked
                handle = await a01.app.start(a01.support("My soup o-1 arrived cold."), id="ticket-1")
                while (
                    not (await handle.explain()).waiting
                    or "approve" not in (await handle.explain()).waiting[0].location
                ):
                    await asyncio.sleep(0.01)
            async with a01.app:
                handle = a01.app.get("ticket-1", a01.support)
                await handle.decide("turn/~0/tools/0/approve", approved=True, by="role:finance")
                reply = await handle.result()
                assert len(provider.requests) == 2
                return f"{reply.output} {reply.usage.money}"

    assert asyncio.run(scenario()).startswith("It is on its way. 0.00")


def test_a02_is_a_conversation_of_child_runs(program: Path) -> None:
    a02 = importlib.import_module("a02_chat")

    async def scenario() -> list[int]:
        async with scripted(text("It was delivered."), text("Yes, I am sure.")) as provider:
            at(a02.app, "fast", provider.url)
            async with a02.app:
                handle = await a02.app.start(a02.chat("ann"), id="c-7")
                await handle.send("say", "Where is o-1?")
                await handle.send("say", "Sure?")
                while len(provider.requests) < 2:
                    await asyncio.sleep(0.01)
                return [len(request.body["messages"]) for request in provider.requests]

    assert asyncio.run(scenario()) == [2, 4]


@pytest.mark.proof
def test_a06_passes_as_it_stands(program: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "weft.testing.plugin"}
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", "test_a06_support.py"]
    ran = subprocess.run(
        command, cwd=program, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
