"""An agent of LangChain, which runs on LangGraph, unchanged but for the wrappers."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import weft
from tests.agents.frameworks import shop
from weft.ext.langchain import durable

app = weft.App()


@tool
async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    if not order_id.startswith("o-"):
        raise ToolException("An order id begins with o-.")
    return await shop.find(order_id)


@tool
async def pack_order(order_id: str) -> str:
    """Pack an order."""
    return await shop.pack(order_id)


@tool
def refund(order_id: str, cents: int) -> str:
    """Give money back."""
    return shop.pay(order_id, cents)


find_order.handle_tool_error = True
model = ChatOpenAI(model="m-1", base_url=shop.MODEL_URL, api_key=SecretStr("sk-test"), max_retries=0)
agent: Any = create_agent(
    durable(model, prices=weft.Prices("1", "2")),
    tools=[
        durable(find_order),
        durable(pack_order),
        durable(refund, effect="irreversible", approvers=["role:finance"]),
    ],
    system_prompt="You help customers of a shop.",
)


@app.workflow
async def support(ctx: weft.Context, message: str) -> str:
    state = await agent.ainvoke({"messages": [{"role": "user", "content": message}]})
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    shop.main(app, support)
