"""Code runs that users bring to other versions of their code while things go wrong."""

from __future__ import annotations

from typing import Any

import weft
from tests.sim.workflows import BIG, PATIENT, Cast, Kind

app = weft.App("memory://sim-code-patches")


@app.step(retries=PATIENT, timeout="2s")
async def charge(n: int) -> int:
    return n + 1


@app.step(retries=PATIENT, timeout="2s")
async def charge_card(n: int) -> int:
    return n + 2


@app.step(retries=PATIENT, timeout="2s")
async def ship(n: int) -> str:
    return f"ship {n}"


@app.step(retries=PATIENT, timeout="2s")
async def courier(n: int) -> str:
    return f"courier {n}" + " " * BIG


def version(number: str, charging: Any, sending: Any) -> Any:
    @app.workflow(name="order", version=number)
    async def order(ctx: weft.Context, n: int, patience: str) -> list[Any]:
        charged = await charging(n)
        await ctx.sleep(patience)
        sent = await sending(charged)
        await ctx.receive("never", timeout="1s", default=None)
        return [number, sent.rstrip()]

    return order


version("3", charge_card, ship)
version("2", charge, courier)
ORDER = version("1", charge, ship)


def _gives(args: dict[str, Any]) -> Any:
    """The version that a run ends with fits all that it did."""
    n = args["n"]
    ways = {"1": f"ship {n + 1}", "2": f"courier {n + 1}", "3": f"ship {n + 2}"}
    return lambda result: ways[result[0]] == result[1]


CODE_PATCHES = Cast(
    "code-patches",
    app,
    (
        Kind(
            ORDER,
            lambda random: {"n": random.randrange(100), "patience": random.choice(("2s", "6s"))},
            _gives,
        ),
    ),
    lacks=(("order@2",), ("order@1", "courier"), ("charge",)),
    runs=(2, 4),
    versions=("1", "2", "2", "3"),
)
