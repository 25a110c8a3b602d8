"""Each framework's own small agent runs in a workflow, asks people, is killed in the middle, and repeats nothing."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.agents.frameworks import shop
from tests.agents.frameworks.completions import completed
from tests.agents.scripted_server import Say, ScriptedServer, refused, scripted

ROOT = Path(__file__).parents[3]
FRAMEWORKS = ("pydantic_ai", "openai_agents", "langchain")
FIND = completed(None, ("c1", "find_order", '{"order_id":"o-1"}'), ("c2", "find_order", '{"order_id":"o-2"}'))
PACK = completed(None, ("c3", "pack_order", '{"order_id":"o-1"}'))
REFUND = completed(None, ("c4", "refund", '{"order_id":"o-1","cents":500}'))
DONE = completed("Done.")
SECONDS_MAX = 240.0


class Shop:
    """A program of one framework, its model server, and its folder."""

    def __init__(self, program: Any, provider: ScriptedServer, folder: Path) -> None:
        self.program = program
        self.app: weft.App = program.app
        self.provider = provider
        self._folder = folder

    def noted(self) -> list[str]:
        return shop.noted(self._folder)

    async def start(self, **options: Any) -> Any:
        return await self.app.start(self.program.support("Send o-1 again."), id="ticket-1", **options)


@asynccontextmanager
async def shop_of(name: str, folder: Path, *answers: Say) -> AsyncIterator[Shop]:
    async with scripted(*answers) as provider:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WEFT_URL", "memory://")
            patch.setenv("SHOP_MODEL_URL", provider.url)
            patch.setenv("SHOP_FOLDER", str(folder))
            importlib.reload(shop)
            sys.modules.pop(f"tests.agents.frameworks.{name}_program", None)
            program = importlib.import_module(f"tests.agents.frameworks.{name}_program")
            async with program.app:
                yield Shop(program, provider, folder)


async def question_of(handle: Any) -> str:
    """Wait until people are asked, and return where."""
    deadline = asyncio.get_running_loop().time() + SECONDS_MAX
    while asyncio.get_running_loop().time() < deadline:
        for wait in (await handle.explain()).waiting:
            if "approve" in wait.location:
                return str(wait.location)
        await asyncio.sleep(0.01)
    raise AssertionError(str(await handle.explain()))


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_calls_are_steps_and_an_irreversible_tool_is_asked_for(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, FIND, REFUND, DONE) as made:
            handle = await made.start()
            place = await question_of(handle)
            assert place.endswith("approve refund")
            assert made.noted() == ["find o-1", "find o-2"]
            await handle.decide(place, approved=True, by="role:finance")
            assert await handle.result() == "Done."
            assert made.noted() == ["find o-1", "find o-2", "pay o-1 500"]
            spent = {unit.unit: unit.spent for unit in (await handle.usage()).units}
            assert (spent["calls"], spent["tools"], spent["tokens"], spent["money:USD"]) == (3, 3, 360, 420)
            assert len(made.provider.requests) == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_no_is_told_to_the_model(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, REFUND, DONE) as made:
            handle = await made.start()
            place = await question_of(handle)
            await handle.decide(place, approved=False, by="role:finance", reason="too late")
            assert await handle.result() == "Done."
            assert made.noted() == []
            assert "too late" in made.provider.requests[-1].body["messages"][-1]["content"]

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_a_tool_says_to_the_model_by_raising_is_a_result(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        wrong = completed(None, ("c1", "find_order", '{"order_id":"1"}'))
        async with shop_of(name, tmp_path, wrong, DONE) as made:
            handle = await made.start()
            assert await handle.result() == "Done."
            # The OpenAI Agents SDK does not tell models what an exception says.
            expected = "An error occurred" if name == "openai_agents" else "begins with o-"
            assert expected in str(made.provider.requests[-1].body["messages"][-1]["content"])

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_budget_ends_the_calls(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, FIND) as made:
            handle = await made.start(budget=weft.Budget(calls=2))
            with pytest.raises(weft.RunFailed) as failed:
                await handle.result()
            assert failed.value.failure.code == "budget.exceeded"
            assert len(made.provider.requests) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_a_call_took_is_kept_back_for_the_next(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, FIND) as made:
            handle = await made.start(budget=weft.Budget(tokens=300))
            with pytest.raises(weft.RunFailed) as failed:
                await handle.result()
            assert failed.value.failure.code == "budget.exceeded"
            assert len(made.provider.requests) == 2  # 240 of 300 tokens are spent, and a call took 120

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_refusal_for_good_is_not_retried(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, refused(401)) as made:
            handle = await made.start()
            with pytest.raises(weft.RunFailed, match="401"):
                await handle.result()
            assert len(made.provider.requests) == 1

    asyncio.run(scenario())


@pytest.mark.proof  # two processes import all of a framework
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_killed_in_the_middle_it_goes_on_and_repeats_nothing_recorded(name: str, tmp_path: Path) -> None:
    def begin(provider: ScriptedServer) -> subprocess.Popen[str]:
        environment = os.environ | {
            "WEFT_URL": f"sqlite:///{tmp_path}/weft.db",
            "SHOP_MODEL_URL": provider.url,
            "SHOP_FOLDER": str(tmp_path),
        }
        command = [sys.executable, "-m", f"tests.agents.frameworks.{name}_program"]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    async def scenario() -> None:
        async with scripted(FIND, PACK, DONE) as provider:
            first = begin(provider)
            while shop.noted(tmp_path) != ["find o-1", "find o-2", "pack o-1"]:
                assert first.poll() is None, first.communicate()
                await asyncio.sleep(0.02)
            first.send_signal(signal.SIGKILL)
            await asyncio.to_thread(first.communicate)
            (tmp_path / "killed").touch()
            second = begin(provider)
            said, complained = await asyncio.to_thread(second.communicate, timeout=SECONDS_MAX)
            assert said == "Done.\n", complained
            # The tool that the process had in its hands was called again. Nothing else was.
            assert shop.noted(tmp_path) == ["find o-1", "find o-2", "pack o-1", "pack o-1"]
            assert len(provider.requests) == 3

    asyncio.run(scenario())
