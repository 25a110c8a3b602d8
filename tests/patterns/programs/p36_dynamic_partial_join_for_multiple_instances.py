"""Bids come in, some bring further bidders along, and it is enough as soon as the sum is: judged after each of them."""

import asyncio

import weft

app = weft.App("memory://")


@app.step
async def bid(bidder: str) -> tuple[int, list[str]]:
    return len(bidder), []


@app.workflow
async def raise_money(bidders: list[str], goal: int) -> int:
    under_way = [asyncio.create_task(bid(bidder)) for bidder in bidders]
    total = 0
    while under_way and total < goal:
        await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        for task in [task for task in under_way if task.done()]:
            under_way.remove(task)
            amount, friends = task.result()
            total += amount
            under_way += [asyncio.create_task(bid(friend)) for friend in friends]
    for task in under_way:
        task.cancel()
    return total
