"""An order: reserve, charge once, ask a person above 500 euros, ship, and take everything back if that fails."""
from dataclasses import dataclass

import weft

app = weft.App()


@dataclass
class Order:
    id: str
    item: str
    cents: int
    email: str


@app.step
async def reserve(order_id: str, item: str) -> str:
    return f"reservation-{order_id}-{item}"


@reserve.undo
async def release(result: str) -> None:
    print("released", result)


@app.step(effect="irreversible", timeout="30s")
async def charge(order_id: str, cents: int) -> str:
    """Send weft.task().key as the idempotency key of your payment provider."""
    print("charged", order_id, cents, "under", weft.task().key)
    return f"payment-{order_id}"


@charge.undo
async def refund(order_id: str, result: str) -> None:
    print("refunded", result)


@app.step(retries=5)
async def ship(order_id: str, item: str) -> str:
    return f"track-{order_id}"


@app.step
async def mail(email: str, text: str) -> None:
    print("mail to", email, text)


@app.workflow
async def place(ctx: weft.Context, order: Order) -> str:
    await reserve(order.id, order.item)
    if order.cents > 50_000:
        answer = await ctx.ask("approve", title=f"Approve {order.id} for {order.cents / 100:.2f} EUR?", of=["role:sales"],
                               about=order, timeout="2d", on_timeout="reject")
        if not answer.approved:
            raise weft.Rollback(answer.reason or "nobody approved it")
    await charge(order.id, order.cents)
    tracking = await ship(order.id, order.item)
    await mail(order.email, f"your order is on its way: {tracking}")
    return tracking


if __name__ == "__main__":
    print(app.run(place(Order("o-1", "lamp", 4_200, "ann@example.com")), id="order-o-1"))
