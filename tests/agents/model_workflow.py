"""Perform the built-in step ``weft.model`` in a code workflow, as agents do."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from weft.agents.models.aliases import ModelAlias
from weft.core import commands as c
from weft.core import values
from weft.runtime.run.driver import CodeScope
from weft.runtime.run.scopes import CURRENT
from weft.steps.failures import rebuild_error
from weft.steps.task import MODEL


async def ask(alias: ModelAlias, **given: Any) -> dict[str, Any]:
    """Ask a model, and return the output of the step."""
    scope: CodeScope | None = CURRENT.get(None)
    assert scope is not None
    driver = scope.driver
    raw = values.encode({"alias": alias.name, **given})
    digest = values.digest(raw)
    n, entry = driver.find_step(scope, "model", digest, raw)
    if entry is None:
        kept = driver.outside.keep(raw)
        entry = driver.schedule(
            c.ScheduleTask(
                scope.prefix, "model", n, MODEL, kept, digest, alias.policy, passed=driver.passed(scope, alias.policy)
            )
        )
    if n and (entry.status == "open" or not driver.is_outcome_known(entry)):
        await driver.future_of(entry)
    if entry.failure is not None:
        raise rebuild_error(entry.failure)
    output: Raw = entry.output
    found: dict[str, Any] = values.decode(
        await driver.value(output) if bytes(output).startswith(values.MARKED) else bytes(output)
    )
    return found
