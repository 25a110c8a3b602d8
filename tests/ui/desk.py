"""An agent for the UI: it looks orders up, and gives money back after somebody has approved it."""

from __future__ import annotations

import os

import weft

app = weft.App(os.environ.get("WEFT_URL", "sqlite:///desk.db"))
app.model("fast", url=os.environ["MODEL_URL"], model="m-1", prices=weft.Prices("1", "4"))


@app.step(effect="pure")
async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order_id": order_id, "state": "delivered", "cents": "4200"}


@app.step(effect="irreversible")
async def refund(order_id: str, cents: int) -> str:
    """Give money back. It cannot be taken back."""
    return f"refund of {cents} for {order_id}"


support = app.agent(
    "support",
    model="fast",
    system="You help customers of a shop.",
    tools=[find_order, refund],
    budget=weft.Budget(money="0.50 USD", calls=20),
)
