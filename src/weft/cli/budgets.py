"""Print what runs have spent, and raise their budgets."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.authoring.handles import Handle
from weft.cli.login import login
from weft.cli.operations import run_operations
from weft.cli.output import console, print_json
from weft.cli.run_control import print_done
from weft.cli.store_access import open_run
from weft.cli.usage import draw_usage
from weft.errors import UsageError
from weft.observe.usage import usage_of


async def print_usage(run: str, *, url: str | None, app: str | None, json: bool) -> None:
    """Print what a run and everything below it have spent, and what is left of its budgets."""
    async with open_run(run, url, app) as (service, row):
        usage = await usage_of(service, row)
    if json:
        print_json(msgspec.to_builtins(usage))
        return
    draw_usage(console(), usage)


async def raise_limits(
    run: str, added: Sequence[str], *, reason: str, url: str | None, app: str | None, json: bool
) -> None:
    """Raise limits of the budget of a run. Raises UsageError, BadValue, NotFound, Refused."""
    amounts = dict(_split(one) for one in added)
    async with open_run(run, url, app) as (service, row):
        handle: Handle[object] = run_operations(service).run_handle(row.id)
        await handle.raise_budget(amounts, reason=reason, by=login())
        if json:
            print_json(msgspec.to_builtins(await usage_of(service, await service.row(row.id))))
            return
        await print_done(service, row, f"the budget of {row.id} is raised", f"the budget of {row.id} will be raised")


def _split(text: str) -> tuple[str, str]:
    unit, equals, amount = text.partition("=")
    if not equals or not unit or not amount:
        raise UsageError(f"--add {text!r} is not a unit and an amount.", hint="Write --add money=1.")
    return unit.strip(), amount.strip()
