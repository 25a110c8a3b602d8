"""Random worlds of agents: models and tools that fail, people who say yes, no or nothing, and processes that die.

`python -m tests.agents.agent_worlds 2000` plays so many worlds. Whatever happens: a run ends; an irreversible tool is
performed at most once for each call; what is recorded is not asked for again; and before each model call every tool
call of the conversation has exactly one result; and its budget covers every child run that an agent is called in.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

import weft
from tests.agents.test_agent_crashes import well_formed
from weft.ports.models import CallPart, ModelMessage, ModelReply, ModelRequest, ModelUsage, TextPart
from weft.testing import SimRun, World, calls

ENDS = {
    "agent.bad_output", "agent.context", "agent.refused", "agent.stuck", "agent.turns", "budget.exceeded",
    "model.rejected", "model.unavailable", "step.failed", "step.outcome_unknown", "step.timed_out",
}  # fmt: skip

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1", context=1_200, fallback=["local"], retries=weft.Retry(2, "fixed", "1s"))
app.model("local", url="http://127.0.0.1:9/v1", context=1_200, retries=weft.Retry(2, "fixed", "1s"))


@app.step(effect="pure", retries=1)
async def look(n: int) -> str:
    """Look something up."""
    return "words " * 40


@app.step(effect="irreversible")
async def pay(n: int) -> str:
    """Pay."""
    return "paid"


@app.step(timeout="3s", retries=0)
async def flaky(n: int) -> str:
    """Fail now and then."""
    return "ok"


helper = app.agent("helper", model="local", tools=[look], turns=3)
agent = app.agent(
    "worker",
    model="fast",
    tools=[look, pay, weft.tool(flaky, on_unknown="tell"), weft.tool(helper, effect="idempotent")],
    turns=6,
    repairs=1,
    repeats=2,
    width=2,
    budget=weft.Budget(tools=12, per_tool={"helper": 3}),
)


class RandomWorld:
    """One world, whose accidents depend on its seed alone."""

    def __init__(self, seed: int) -> None:
        self.world = World(app, seed)
        self._random = random.Random(seed)
        self._seed = seed
        if self._random.random() < 0.6:
            self.world.crash_at_write((self._random.randrange(40), self._random.choice(["before", "after"])))
        for alias in ("fast", "local"):
            self.world.fake_model(alias, *[self._reply] * 60)
        self.world.fake(flaky, *[self._random.choice(["ok", ValueError("no"), OSError("gone")]) for _ in range(6)])

    def _reply(self, request: ModelRequest) -> object:
        well_formed(request)
        chance = random.Random(f"{self._seed}/{request.key}/{len(request.messages)}")
        pick = chance.random()
        if pick < 0.08:
            raise weft.ModelFailed("busy", is_transient=True)
        if pick < 0.10:
            raise weft.ModelFailed("no", code="model.rejected")
        if pick < 0.13:
            raise weft.ModelFailed("too long", code="model.context")
        if pick < 0.16:
            message = ModelMessage(role="assistant", parts=(TextPart("no"),))
            return ModelReply(message=message, finish="refused", usage=ModelUsage(), model="m")
        if pick < 0.22:
            return calls(nothing={})
        if pick < 0.27:
            return calls(look="{broken")
        if pick < 0.30:
            return ""
        if pick < 0.45 or not request.tools:
            return "Done."
        names = [tool.name for tool in request.tools]
        parts = tuple(
            CallPart(
                id=f"c{number % 2}",  # a provider that repeats its ids harms nobody
                name=(name := chance.choice(names)),
                arguments='{"prompt":"help"}' if name == "helper" else f'{{"n":{chance.randrange(3)}}}',
            )
            for number in range(chance.randrange(1, 4))
        )
        message = ModelMessage(role="assistant", parts=parts)
        return ModelReply(message=message, finish="calls", usage=ModelUsage(input=200, output=20), model="m")

    def play(self) -> str:
        """Play the world to its end, and check what must hold. Returns how the run ended."""
        run = self.world.start(agent("go"))
        for _ in range(30):
            self.world.advance("1m")
            if run.status in ("completed", "failed", "held", "cancelled"):
                break
            for wait in run.waiting_for():
                if wait.kind == "ask" and self._random.random() < 0.9:
                    run.answer(wait.location, approved=self._random.random() < 0.7, by="fin")
                elif wait.kind == "ask":
                    self.world.advance("2d")
                    break
        end = self._end_of(run.status, run.events[-1].data)
        paid = Counter(call.key for call in self.world.calls(pay))
        assert all(count == 1 for count in paid.values()), f"paid twice: {paid}"
        asked = [*self.world.model_calls("fast"), *self.world.model_calls("local")]
        repeated = Counter((call.key, call.attempt) for call in asked)
        assert sum(count - 1 for count in repeated.values()) <= 3, "more was repeated than was in flight"
        self._check_budget(run)
        return end

    def _check_budget(self, run: SimRun[Any]) -> None:
        """No more was spent than the budget has, and each child run that was begun is covered."""
        spent = {line.unit: line for line in self.world.perform(lambda: app.get(run.id).usage()).units}
        children = sum(event.kind == "child_started" for event in run.events)
        helped = spent["tool:helper"]
        assert children <= helped.spent <= 3
        assert spent["tools"].spent <= 12
        assert helped.reserved == spent["tools"].reserved == 0

    @staticmethod
    def _end_of(status: str, last: dict[str, object]) -> str:
        if status == "completed":
            return status
        failure = last.get("failure")
        assert status == "failed", f"the run is {status}"
        assert isinstance(failure, dict)
        assert failure["code"] in ENDS, failure
        return str(failure["code"])


def play(seeds: range) -> Counter[str]:
    """Play worlds, and return how often each end came."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        world = RandomWorld(seed)
        try:
            ends[world.play()] += 1
        except BaseException:
            print(f"seed {seed}")
            raise
        finally:
            world.world.close()
    return ends


if __name__ == "__main__":
    import logging

    logging.getLogger("weft").setLevel(logging.CRITICAL)
    print(play(range(int(sys.argv[1]))))
