"""A shop in FastAPI with a page that shows an order as it moves: server-sent events from Weft, no polling."""
import asyncio
from html import escape

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

import weft

flows = weft.App()
shop = FastAPI(lifespan=flows.lifespan)
shop.mount("/weft", flows.router)

PAGE = """<!doctype html><title>{order}</title><h1>Order {order}</h1><ol id="log"></ol><script>
const source = new EventSource("/weft/api/v1/runs/{order}/streams/progress/live");
source.addEventListener("chunk", event => {{
  const line = document.createElement("li");
  line.textContent = JSON.parse(event.data).chunk;
  document.getElementById("log").append(line);
}});
source.addEventListener("end", () => source.close());
</script>"""


class NewOrder(BaseModel):
    item: str
    address: str


@flows.step
async def pack(item: str) -> str:
    await asyncio.sleep(0.05)
    return f"box of {item}"


@flows.step
async def hand_over(box: str, address: str) -> str:
    await asyncio.sleep(0.05)
    return f"{box} is on its way to {address}"


@flows.workflow
async def order(ctx: weft.Context, new: NewOrder) -> str:
    await ctx.emit("progress", "we got your order")
    box = await pack(new.item)
    await ctx.emit("progress", "it is packed")
    text = await hand_over(box, new.address)
    await ctx.emit("progress", text)
    return text


@shop.post("/orders", status_code=202)
async def place(new: NewOrder) -> dict[str, str]:
    handle = await flows.start(order(new))
    return {"order": handle.id, "page": f"/orders/{handle.id}"}


@shop.get("/orders/{order_id}")
async def look(order_id: str) -> HTMLResponse:
    return HTMLResponse(PAGE.format(order=escape(order_id, quote=True)))
