import weft

app = weft.App()
app.model("fast", url="https://api.openai.com/v1", model="gpt-5-mini", key=weft.Secret("env:OPENAI_API_KEY"),
          context=128_000, prices=weft.Prices("0.25", "2.00", cached="0.025"), fallback=["local"])
app.model("local", url="http://127.0.0.1:8080/v1", prices=weft.Prices("0", "0"))

@app.step(effect="pure")
async def find_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order_id": order_id, "state": "delivered", "cents": "4200"}

@app.step(effect="irreversible")
async def refund(order_id: str, cents: int) -> str:
    """Give money back. It cannot be taken back."""
    return f"refund-{weft.task().key[:8]}"

support = app.agent("support", model="fast", system="You help customers of a shop.", tools=[find_order, refund],
                    approvers=["role:finance"], budget=weft.Budget(money="0.50 USD", calls=20))

if __name__ == "__main__":                       # kill it while it works or waits for finance: run it again and it goes on
    reply = app.run(support("My soup o-1 arrived cold. I want my money back."), id="ticket-1")
    print(reply.output, reply.usage.money)
