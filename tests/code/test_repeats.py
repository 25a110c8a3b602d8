"""Work that a retry repeats: by its effect it keeps or renews its key, keeps its result, or waits for a person."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

import weft
from tests.code.desk import Desk
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.effects import PerformTask, StopTask
from weft.core.ids import EntryId
from weft.core.run.env import Env
from weft.errors import NotFound, Refused

ENV = Env(now=1, check=lambda *_: None)


class Shop:
    """An app whose steps write down what was performed, with which key."""

    def __init__(self) -> None:
        self.app = weft.App("memory://")
        self.ledger: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.broken: set[str] = set()
        self.amount = 1
        self.price = self.app.step(name="price", retries=0)(self._price)
        self.charge = self.app.step(name="charge", effect="irreversible")(self._charge)
        self.mail = self.app.step(name="mail", retries=0)(self._mail)
        self.flow = self.app.workflow(name="flow")(self._flow)

    async def _price(self) -> int:
        self._perform("price", None)
        return self.amount

    async def _charge(self, amount: int) -> str:
        self._perform("charge", amount)
        return f"charged {amount}"

    async def _mail(self, text: str) -> str:
        self._perform("mail", text)
        return text

    def _perform(self, step: str, given: Any) -> None:
        self.ledger.append((step, given))
        self.keys.append(weft.task().key.partition("/")[2])
        if step in self.broken:
            raise OSError(step)

    async def _flow(self) -> str:
        return await self.mail(await self.charge(await self.price()))

    def performed(self, step: str) -> list[Any]:
        return [given for name, given in self.ledger if name == step]


def failed(*broken: str) -> tuple[Shop, Desk]:
    shop = Shop()
    shop.broken = set(broken)
    desk = Desk(shop.app)
    desk.fail(shop.flow())
    shop.broken = set()
    return shop, desk


def test_an_irreversible_step_that_failed_is_performed_again_only_if_somebody_approves() -> None:
    shop, desk = failed("charge")

    async def scene() -> str:
        run = shop.app.get("run")
        await run.retry()
        await asyncio.sleep(60)
        assert shop.performed("charge") == [1]
        await run.decide("charge", approved=True, by="ann")
        return await run.result()

    assert desk.play(scene) == "charged 1"
    assert shop.performed("charge") == [1, 1]
    assert shop.keys == ["price", "charge", "charge", "mail"]


def test_a_step_that_is_rejected_fails_and_is_asked_about_again() -> None:
    shop, desk = failed("charge")

    async def scene() -> None:
        run = shop.app.get("run")
        await run.retry()
        await run.decide("charge", approved=False, by="ann", reason="it was charged")
        with pytest.raises(weft.RunFailed, match="rejected by ann: it was charged"):
            await run.result()
        await run.retry()
        await run.decide("charge", approved=True, by="ann")
        await run.result()

    desk.play(scene)
    assert shop.performed("charge") == [1, 1]
    codes = [event.failure.code for event in desk.log() if isinstance(event, e.TaskFailed)]
    assert codes == ["", "step.rejected"]


def test_an_answer_counts_once() -> None:
    shop, desk = failed("charge")

    async def scene() -> None:
        run = shop.app.get("run")
        await run.retry()
        await run.decide("charge", approved=True)
        with pytest.raises(NotFound):
            await run.decide("charge", approved=True)
        await run.result()

    desk.play(scene)
    assert shop.performed("charge") == [1, 1]


def test_the_question_survives_a_restart_and_is_listed_like_every_other() -> None:
    shop, desk = failed("charge")

    async def ask() -> None:
        await shop.app.get("run").retry()

    async def answer() -> str:
        run = shop.app.get("run")
        await asyncio.sleep(1)
        assert "charge must not be performed twice" in str(await run.explain())
        await run.decide("charge", approved=True)
        return await run.result()

    desk.play(ask, crash=True)
    assert desk.play(answer) == "charged 1"
    assert shop.performed("charge") == [1, 1]


def test_a_cancelled_run_closes_the_question() -> None:
    shop, desk = failed("charge")

    async def scene() -> None:
        run = shop.app.get("run")
        await run.retry()
        await run.cancel()
        with pytest.raises(weft.RunCancelled):
            await run.result()

    desk.play(scene)
    assert shop.performed("charge") == [1]
    assert desk.state().asks == {}
    assert desk.state().parked == {}


def test_an_approval_of_work_to_which_the_run_never_came_is_refused() -> None:
    shop, desk = failed("charge")

    async def scene() -> None:
        run = shop.app.get("run")
        with pytest.raises(weft.Refused, match="the run never came to a step chrage"):
            await run.retry(approved=["charge", "chrage"])

    desk.play(scene)
    assert desk.state().status == "failed"
    assert shop.performed("charge") == [1]


def test_an_approval_given_beforehand_is_recorded_and_used_once() -> None:
    shop, desk = failed("charge")

    async def scene() -> str:
        run = shop.app.get("run")
        await run.retry(approved=["charge"], by="ann", reason="the bank has no charge")
        return await run.result()

    assert desk.play(scene) == "charged 1"
    retried = next(event for event in desk.log() if isinstance(event, e.RunRetried))
    assert (retried.approved, retried.by, retried.reason) == (["charge"], "ann", "the bank has no charge")
    assert [event.approved for event in desk.log() if isinstance(event, e.TaskReleased)] == ["charge"]
    assert desk.state().approvals == []


def test_a_retry_from_a_place_keeps_the_result_of_an_irreversible_step() -> None:
    shop, desk = failed("mail")
    desk.play(lambda: retry(shop, start="price"))
    assert shop.performed("price") == [None, None]
    assert shop.performed("charge") == [1]
    assert shop.keys == ["price", "charge", "mail", "price", "mail"]


def test_an_irreversible_step_that_gets_another_input_asks_and_has_a_new_key() -> None:
    shop, desk = failed("mail")
    shop.amount = 2

    async def scene() -> str:
        run = shop.app.get("run")
        await run.retry(start="price")
        await asyncio.sleep(60)
        assert shop.performed("charge") == [1]
        await run.decide("charge", approved=True)
        return await run.result()

    assert desk.play(scene) == "charged 2"
    assert shop.performed("charge") == [1, 2]
    assert shop.keys == ["price", "charge", "mail", "price", "charge~1", "mail~1"]


def test_a_place_that_gets_another_input_again_has_the_next_number() -> None:
    shop, desk = failed("mail")
    for amount in (2, 3):
        shop.amount, shop.broken = amount, {"mail"}
        with pytest.raises(weft.RunFailed):
            desk.play(lambda: retry(shop, start="price", approved=["charge"]))
    shop.broken = set()
    desk.play(lambda: retry(shop))
    assert shop.performed("charge") == [1, 2, 3]
    assert shop.keys == [
        *("price", "charge", "mail"),
        *("price", "charge~1", "mail~1"),
        *("price", "charge~2", "mail~2"),
        "mail~2",
    ]


async def retry(shop: Shop, **options: Any) -> str:
    run = shop.app.get("run")
    await run.retry(**options)
    return await run.result()


def held(effect: str = "irreversible") -> CodeMachine:
    """A run that is held while its first step is in flight."""
    machine = CodeMachine.fresh("0" * 32)
    take(machine, c.StartRun(run_id="run", workflow="flow", input=Raw(b"{}")))
    policy = e.Policy(effect=effect)  # type: ignore[arg-type]
    take(machine, c.ScheduleTask("", "pay", 1, "pay", Raw(b"{}"), "d1", policy))
    take(machine, c.HoldRun("code.diverged", "changed"))
    return machine


def take(machine: CodeMachine, command: c.AnyCommand) -> list[Any]:
    """Decide and apply a command. Returns the effects."""
    effects: list[Any] = []
    events = machine.decide(command, ENV)
    while events:
        for event in events:
            machine.evolve(e.decode(e.encode(event)), at=1)
            effects += machine.effects(event)
        events = machine.follow(ENV)
    return effects


def test_a_retry_from_a_place_is_refused_while_an_irreversible_task_is_in_flight_there() -> None:
    machine = held()
    before = machine.snapshot()
    with pytest.raises(Refused, match="pay is in flight in run") as caught:
        machine.decide(c.RetryRun("pay"), ENV)
    assert caught.value.code == "run.in_flight"
    assert "--force" in caught.value.hint
    assert machine.snapshot() == before


def test_a_forced_retry_records_that_the_outcome_is_unknown() -> None:
    machine = held()
    unknown, retried = machine.decide(c.RetryRun("pay", force=True), ENV)
    assert isinstance(unknown, e.TaskFailed)
    assert unknown.failure.code == "step.outcome_unknown"
    assert isinstance(retried, e.RunRetried)
    effects = take(machine, c.RetryRun("pay", force=True))
    assert StopTask(EntryId(2)) in effects
    take(machine, c.ScheduleTask("", "pay", 1, "pay", Raw(b"{}"), "d1", e.Policy(effect="irreversible")))
    assert list(machine.state.asks) == list(machine.state.parked) == [6]
    assert machine.location(6) == "pay"


def test_an_idempotent_task_in_flight_is_stopped_and_keeps_its_key() -> None:
    machine = held("idempotent")
    assert StopTask(EntryId(2)) in take(machine, c.RetryRun("pay"))
    effects = take(machine, c.ScheduleTask("", "pay", 1, "pay", Raw(b"{}"), "d1"))
    assert [effect.key for effect in effects if isinstance(effect, PerformTask)] == [f"{'0' * 32}/pay"]
