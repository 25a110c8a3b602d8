"""An agent whose tool runs in another process, which a test imports."""

from __future__ import annotations

import weft

app = weft.App("memory://")
app.registered.policy.declare({
    "weft": "policy/1",
    "rules": [{"deny": "secret", "names": ["env:OTHER_KEY"], "when": "attributes.trusted != true"}],
})  # fmt: skip


@app.step(run_in="process", effect="pure")
def reveal(place: str, key: weft.Secret | None = None) -> str:
    """Reveal a secret."""
    return f"{len((key or weft.Secret(f'env:{place}')).reveal())} characters"


@app.workflow
async def show(ctx: weft.Context, place: str) -> str:
    try:
        return await reveal(place)
    except weft.StepFailed as error:
        return f"{error.failure.code} after {error.failure.attempts}"


shop = app.agent("shop", model="fast", tools=[weft.tool(reveal, bind={"key": weft.Secret("env:SHOP_KEY")})])
curious = app.agent("curious", model="fast", tools=[reveal])
