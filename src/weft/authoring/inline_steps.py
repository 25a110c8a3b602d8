"""Perform a function of the workflow's own code as a step, or return its recorded result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core import commands as c
from weft.core.code.locations import check_name
from weft.runtime.run.driver import CodeScope
from weft.runtime.run.inline import InlineBody
from weft.steps.codec import Codec
from weft.steps.failures import rebuild_error


async def perform_inline(
    scope: CodeScope, name: str, fn: Callable[[], Any], codec: Codec[Any], ask: Callable[[int], c.ScheduleTask]
) -> Any:
    """Perform ``fn`` at a place. ``ask`` makes the command for the n-th use of the name. Raises its failure."""
    driver = scope.driver
    n, entry = driver.find(scope, check_name(name), "step")
    if entry is None:
        command = ask(n)
        # The body is set first, because an ephemeral step begins while it is being recorded.
        driver.bodies[driver.machine.state.seq + 1] = InlineBody(fn, codec)
        entry = driver.ask(command)
    elif entry.status == "open":
        driver.bodies[entry.id] = InlineBody(fn, codec)
    await driver.outcome(entry)
    driver.bodies.pop(entry.id, None)
    if entry.failure is not None:
        raise rebuild_error(entry.failure, run_id=driver.machine.state.run_id)
    return driver.read(codec, await driver.value(entry.output), entry)
