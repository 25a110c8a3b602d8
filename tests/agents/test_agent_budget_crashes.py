"""An agent never exceeds its budget, whatever crashes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import weft
from weft.core.ledger import LedgerRow
from weft.testing import World, calls, crash_everywhere


def make_app(**options: Any) -> tuple[weft.App, Any]:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:1/v1", prices=weft.Prices("1", "2"), output=1_000)

    @app.step(effect="pure")
    async def look(what: str) -> str:
        """Look something up."""
        return f"found {what}"

    agent = app.agent("helper", model="fast", system="You help.", tools=[look], **options)
    return app, agent


def ledger(world: World, run: Any) -> Mapping[str, LedgerRow]:
    uid = world.perform(lambda: world.app.service.row(run.id)).uid
    rows = world.perform(lambda: world.app.service.store.budgets.read([uid]))
    return {row.unit: row for row in rows}


app, agent = make_app(budget=weft.Budget(money="0.01 USD", calls=4))


def scenario(world: World) -> None:
    world.fake_model("fast", calls(look={"what": "a"}), calls(look={"what": "b"}), "Done.")
    run = world.start(agent("a and b?"))
    try:
        run.result()
    except weft.RunFailed as failed:
        ended = failed.failure.code
    else:
        ended = "done"
    assert ended in ("done", "budget.exceeded")
    spent = ledger(world, run)
    for row in spent.values():
        assert row.limit is None or row.spent <= row.limit
        assert row.reserved == 0
    assert spent["calls"].spent >= len(world.model_calls("fast"))


def test_an_agent_never_exceeds_its_budget_whatever_crashes() -> None:
    assert crash_everywhere(app, scenario) > 10
