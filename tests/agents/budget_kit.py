"""Calls with a cover, as the loop of an agent makes them, in plain workflows."""

from __future__ import annotations

from typing import Any

import weft
from weft.core import commands as c
from weft.core import values
from weft.core.budgets import Amounts, Cover
from weft.runtime.run.driver import current_scope
from weft.steps.failures import rebuild_error


def tokens(amount: int, *, calls: int = 1) -> Cover:
    """A call that costs so many tokens at most, whatever it writes."""
    return Cover(amounts=Amounts(tokens=amount, calls=calls))


def elastic(prompt: int, output: int) -> Cover:
    """A call that may write less if less is left."""
    return Cover(
        amounts=Amounts(tokens=prompt + output, calls=1),
        least=Amounts(tokens=prompt + 256, calls=1),
        output=output,
        output_least=256,
    )


def tool(name: str) -> Cover:
    return Cover(amounts=Amounts(tools=1, per_tool={name: 1}))


async def covered(step: weft.Step[Any, Any], cover: Cover, /, *args: Any, place: str = "") -> Any:
    """Perform a step as a call with a cover."""
    scope = current_scope()
    assert scope is not None
    driver, given = scope.driver, step.signature.bind(args, {}, what=step.name)
    digest = values.digest(given)
    n, entry = driver.find(scope, place or step.name, "step", digest, given)
    if entry is None:
        ask = c.ScheduleTask(scope.prefix, place or step.name, n, step.body.name, driver.outside.keep(given), digest)
        entry = driver.schedule(
            c.ScheduleTask(
                ask.scope, ask.name, n, ask.step, ask.input, digest, step.policy, step.undo_plan, cover=cover
            )
        )
    await driver.outcome(entry)
    if entry.failure is not None:
        raise rebuild_error(entry.failure, run_id=driver.machine.state.run_id)
    return driver.read(step.signature.result, await driver.value(entry.output), entry)
