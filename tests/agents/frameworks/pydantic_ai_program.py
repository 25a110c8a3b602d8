"""An agent of pydantic-ai, unchanged but for one wrapper."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import weft
from tests.agents.frameworks import shop
from weft.ext.pydantic_ai import durable

app = weft.App()


async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    if not order_id.startswith("o-"):
        raise ModelRetry("An order id begins with o-.")
    return await shop.find(order_id)


async def pack_order(order_id: str) -> str:
    """Pack an order."""
    return await shop.pack(order_id)


def refund(order_id: str, cents: int) -> str:
    """Give money back."""
    return shop.pay(order_id, cents)


agent: Agent[None, str] = Agent(
    OpenAIChatModel("m-1", provider=OpenAIProvider(base_url=shop.MODEL_URL, api_key="sk-test")),
    name="support",
    instructions="You help customers of a shop.",
    tools=[find_order, pack_order, Tool(refund, metadata={"effect": "irreversible"})],
)
helper: Any = durable(agent, approvers=["role:finance"], prices=weft.Prices("1", "2"))


@app.workflow
async def support(ctx: weft.Context, message: str) -> str:
    answer: str = (await helper.run(message)).output
    return answer


if __name__ == "__main__":
    shop.main(app, support)
