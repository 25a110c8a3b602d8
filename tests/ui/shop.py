"""The application that the UI is shown with: an order as code, leads as a graph, an invoice as a goal.

Nothing here takes time by itself: what waits, waits for an answer, a message or a long timer.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, TypedDict

import msgspec

import weft

app = weft.App(os.environ.get("WEFT_URL", "sqlite:///shop.db"))


class Decision(msgspec.Struct):
    """What a person answers."""

    discount: int = 0
    note: str = ""


class Customer(TypedDict):
    email: str
    country: str


declined: set[str] = set()


@app.step(effect="idempotent")
async def reserve(order_id: str, items: int) -> dict[str, Any]:
    return {"order_id": order_id, "shelf": "A7", "items": items}


@app.step(retries=weft.Retry(1, delay="1ms"))
async def charge(order_id: str, cents: int) -> str:
    """Decline a card that has no cover, until the run is retried."""
    if cents > 100_000 and order_id not in declined:
        declined.add(order_id)
        raise PermissionError(f"card declined for {order_id}")
    if cents > 100_000:
        declined.discard(order_id)
        raise PermissionError(f"card declined for {order_id}, second attempt")
    return f"charge-{order_id}"


@app.step(retries=0)
async def pack(item: int) -> str:
    if item < 0:
        raise ValueError(f"item {item} is not on its shelf")
    return f"parcel-{item}"


@app.step
async def speak(words: list[str]) -> int:
    for word in words:
        weft.task().emit("tokens", word + " ")
    return len(words)


@app.step(retries=weft.Retry(2, delay="1ms"))
async def tell(words: list[str]) -> int:
    """Speak, and fail at the end of the first attempt."""
    for word in words:
        weft.task().emit("tokens", word + " ")
        print(word)
    if weft.task().attempt == 1:
        logging.getLogger("story").warning("not again")
        raise ConnectionError("the line broke")
    return len(words)


@app.step(retries=weft.Retry(4, delay="1h"))
async def deliver(parcel: str) -> str:
    raise ConnectionError("no route to the warehouse")


@app.workflow
async def delivery(ctx: weft.Context, parcel: str) -> str:
    """Deliver something from a warehouse that does not answer."""
    return await deliver(parcel)


@app.workflow
async def told(ctx: weft.Context, words: list[str]) -> int:
    """Tell something in two attempts."""
    return await tell(words)


@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int = 4200, items: int = 3) -> str:
    """Reserve, charge, ask a person, ship."""
    await ctx.set(order=order_id)
    await reserve(order_id, items)
    await charge(order_id, cents)
    answer = await ctx.ask(
        "approve", title=f"Ship order {order_id}?", form=Decision, about={"order_id": order_id, "total": cents}
    )
    if not answer.approved:
        return "rejected"
    await ctx.map("parcels", pack, list(range(items)), width=4)
    return f"shipped {order_id}"


@app.step
async def estimate(customer: str) -> int:
    return 100 * len(customer)


@app.workflow
async def offer(ctx: weft.Context, customer: str) -> str:
    """Estimate what an offer costs, and ask a person whether to send it."""
    total = await estimate(customer)
    answer = await ctx.ask("approve", title=f"Send {customer} the offer?", form=Decision, about={"total": total})
    return "sent" if answer.approved else "kept"


@app.workflow
async def quick(ctx: weft.Context, name: str, count: int = 1, express: bool = False) -> str:
    """Greet somebody in one step."""
    await speak(["hello", name])
    return f"hello {name}" * count


@app.workflow
async def many(ctx: weft.Context, count: int, missing: int = 0) -> int:
    """Pack many things, some of which are missing."""
    wanted = [*range(count - missing), *(-number for number in range(1, missing + 1))]
    return len(await ctx.map("parcels", pack, wanted, width=32))


@app.workflow
async def large(ctx: weft.Context, size: int) -> str:
    """Return a text of this size."""
    return "y" * size


@app.workflow
async def parent(ctx: weft.Context, name: str) -> str:
    """Start two children."""
    await ctx.call(quick(name), id=f"{name}-quick")
    return await ctx.call(order(f"{name}-order"), id=f"{name}-order")


@app.workflow
async def patient(ctx: weft.Context, name: str) -> str:
    """Wait for a message, then for two days."""
    quote = await ctx.receive("quote", int)
    await ctx.sleep("2d")
    return f"{name} for {quote}"


@app.step
async def enrich_company(company: str) -> dict[str, Any]:
    return {"confidence": 0.9, "size": 2000 if company == "Huge" else 20, "tier": "small"}


@app.step
def probe_domain(domain: str) -> bool:
    return True


@app.step
def call_sales(profile: dict[str, Any]) -> None: ...


@app.step
def add_to_campaign(domains: list[bool]) -> None: ...


leads = app.graph(Path(__file__).with_name("leads.yaml"))


@app.step(gives=("email", "country"))
async def load_customer(order_id: str) -> Customer:
    return {"email": "ann@example.com", "country": "DE"}


@app.step(gives="total")
def price(order_id: str, country: str) -> int:
    return 119 if country == "DE" else 100


@app.step(gives="invoice_url", when="total > 0")
async def render_invoice(order_id: str, total: int, language: str = "en") -> str:
    return f"https://shop.example/{language}/{order_id}"


@app.step
async def send_invoice(email: str, invoice_url: str) -> str:
    return f"sent to {email}"


invoicing = app.goal("invoicing", send_invoice)
