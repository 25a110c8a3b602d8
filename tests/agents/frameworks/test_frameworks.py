"""Each framework's own small agent runs in a workflow, asks people, is killed in the middle, and repeats nothing."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
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

    def refused(self) -> dict[str, int]:
        """How many calls of each tool the metrics count as refused."""
        work = self.app.service.work
        assert work is not None
        return {
            tool: counts.calls["refused"] for tool, counts in work.tools.counts.items() if "refused" in counts.calls
        }

    def noted(self) -> list[str]:
        return shop.noted(self._folder)

    async def start(self, **options: Any) -> Any:
        return await self.app.start(self.program.support("Send o-1 again."), id="ticket-1", **options)


@asynccontextmanager
async def shop_of(
    name: str, folder: Path, *answers: Say, rules: Sequence[Any] = (), **more: Any
) -> AsyncIterator[Shop]:
    async with scripted(*answers) as provider:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WEFT_URL", "memory://")
            patch.setenv("SHOP_MODEL_URL", provider.url)
            patch.setenv("SHOP_FOLDER", str(folder))
            importlib.reload(shop)
            sys.modules.pop(f"tests.agents.frameworks.{name}_program", None)
            program = importlib.import_module(f"tests.agents.frameworks.{name}_program")
            if rules or more:
                program.app.registered.policy.declare({"weft": "policy/1", "rules": list(rules), **more})
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


@pytest.mark.parametrize("method", ["run_sync", "run_stream_sync"])
def test_an_agent_that_blocks_is_refused_in_a_workflow_with_what_to_write(method: str) -> None:
    from pydantic_ai import Agent

    from weft.ext.pydantic_ai import durable

    agent = durable(Agent("test", name="support"))
    app = weft.App("memory://")

    @app.workflow
    async def support(ctx: weft.Context) -> str:
        return str(getattr(agent, method)("hello"))

    with pytest.raises(weft.RunFailed, match=rf"{method}\(\).*Write await agent\.run\("):
        app.run(support())


def test_an_agent_blocks_outside_a_workflow() -> None:
    from pydantic_ai import Agent

    from weft.ext.pydantic_ai import durable

    agent = durable(Agent("test", name="support"))
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        assert agent.run_sync("hello").output
    asyncio.set_event_loop(None)


def test_what_cannot_be_made_durable_is_refused() -> None:
    from agents import Agent as SdkAgent
    from pydantic_ai import Agent

    from weft.ext import langchain, openai_agents, pydantic_ai

    for durable in (pydantic_ai.durable, openai_agents.durable, langchain.durable):
        with pytest.raises(weft.UsageError, match="not a int"):
            durable(42)
    with pytest.raises(weft.UsageError, match="support is durable already"):
        pydantic_ai.durable(pydantic_ai.durable(Agent("test", name="support")))
    with pytest.raises(weft.UsageError, match="clerk is durable already"):
        openai_agents.durable(openai_agents.durable(SdkAgent(name="clerk")))


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
            assert made.refused() == {"refund": 1}
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
@pytest.mark.parametrize("policy", ["model", "spent", "limit", "money", "required"])
def test_the_policy_holds_for_its_calls(policy: str, name: str, tmp_path: Path) -> None:
    agent = {"langchain": "ChatOpenAI"}.get(name, "support")
    given: Any = {
        "model": {"rules": [{"deny": "model", "names": ["m-*"]}]},
        "spent": {"rules": [{"deny": "model", "names": ["*"], "when": "spent.calls > 3"}]},
        "limit": {"rules": [{"limit": {"calls": 1, "per": "month"}, "to": [f"agent:{agent}"]}]},
        "money": {"rules": [{"limit": {"money": "1 EUR", "per": "month"}}]},
        "required": {"require": {"budget": [f"agent:{agent}"]}},
    }[policy]

    async def scenario() -> None:
        async with shop_of(name, tmp_path, FIND, DONE, **given) as made:
            with pytest.raises(weft.RunFailed) as failed:
                await (await made.start()).result()
            assert failed.value.failure.code == ("budget.exceeded" if policy == "limit" else "policy.denied")
            assert failed.value.failure.attempts == 1
            assert len(made.provider.requests) == (policy == "limit")

    asyncio.run(scenario())


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_money_of_a_run_above_needs_prices(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shop_of(name, tmp_path, DONE) as made:

            @made.app.workflow
            async def outer(ctx: weft.Context) -> str:
                return str(await made.program.support("Send o-1 again."))

            handle = await made.app.start(outer(), budget=weft.Budget(money="1 EUR"))
            with pytest.raises(weft.RunFailed) as failed:
                await handle.result()
            assert "budget.no_price" in str(failed.value.failure) or "no prices in it" in str(failed.value)
            assert made.provider.requests == []

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
