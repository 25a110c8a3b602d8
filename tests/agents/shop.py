"""An agent of a shop, with steps that tests look at."""

from __future__ import annotations

import weft


class Shop:
    """An app with two steps, a model and an agent, made anew for each test that changes something."""

    def __init__(self, **options: object) -> None:
        self.app = app = weft.App()
        app.model("fast", url="http://127.0.0.1:9/v1", fallback=["local"], retries=weft.Retry(2, "fixed", "1s"))
        app.model("local", url="http://127.0.0.1:9/v1", retries=weft.Retry(1))

        @app.step(effect="pure")
        async def find_order(order_id: str) -> dict[str, str]:
            """Look an order up."""
            return {"order_id": order_id, "state": "delivered"}

        @app.step(effect="irreversible")
        async def refund(order_id: str, cents: int) -> str:
            """Give money back. It cannot be taken back."""
            return f"refunded {cents} for {order_id}"

        self.find_order = find_order
        self.refund = refund
        given = {"model": "fast", "tools": [find_order, refund], "approvers": ["role:finance"], **options}
        self.support: weft.Agent[str] = app.agent("support", **given)  # type: ignore[arg-type]
