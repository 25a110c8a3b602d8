"""An agent of the OpenAI Agents SDK, unchanged but for one wrapper."""

from __future__ import annotations

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from openai import AsyncOpenAI

import weft
from tests.agents.frameworks import shop
from weft.ext.openai_agents import durable

app = weft.App()
set_tracing_disabled(True)


@function_tool
async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    if not order_id.startswith("o-"):
        raise ValueError("An order id begins with o-.")
    return await shop.find(order_id)


@function_tool
async def pack_order(order_id: str) -> str:
    """Pack an order."""
    return await shop.pack(order_id)


@function_tool
def refund(order_id: str, cents: int) -> str:
    """Give money back."""
    return shop.pay(order_id, cents)


model = OpenAIChatCompletionsModel("m-1", AsyncOpenAI(base_url=shop.MODEL_URL, api_key="sk-test", max_retries=0))
agent = Agent(
    name="support", instructions="You help customers of a shop.", model=model, tools=[find_order, pack_order, refund]
)
helper = durable(agent, effects={"refund": "irreversible"}, approvers=["role:finance"], prices=weft.Prices("1", "2"))


@app.workflow
async def support(ctx: weft.Context, message: str) -> str:
    return str((await Runner.run(helper, message)).final_output)


if __name__ == "__main__":
    shop.main(app, support)
