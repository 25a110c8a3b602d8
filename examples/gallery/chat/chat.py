"""Approval in a chat: post a message with two buttons, wait for a click, update the message. Slack would look the same."""
from collections.abc import AsyncIterator

import aiohttp

import weft

app = weft.App()
CHAT = "http://127.0.0.1:9001"


@app.resource
async def chat() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session


@app.step
async def post(channel: str, text: str, buttons: list[str], run: str, *, chat: aiohttp.ClientSession = weft.injected) -> str:
    """Each button carries the id of the run, so that a click finds its way back."""
    message = {"channel": channel, "text": text, "buttons": buttons, "value": run, "key": weft.task().key}
    async with chat.post(f"{CHAT}/messages", json=message) as answer:
        answer.raise_for_status()
        return str((await answer.json())["id"])


@app.step
async def update(message: str, text: str, *, chat: aiohttp.ClientSession = weft.injected) -> None:
    async with chat.put(f"{CHAT}/messages/{message}", json={"text": text}) as answer:
        answer.raise_for_status()


@app.workflow
async def release(ctx: weft.Context, version: str) -> bool:
    message = await post("#releases", f"Release {version}?", ["approve", "reject"], ctx.run_id)
    answer = await ctx.ask("release", title=f"Release {version}?", of=["role:release"], timeout="4h", on_timeout="reject")
    who = ", ".join(answer.by) or "nobody in time"
    await update(message, f"Release {version}: {'approved' if answer.approved else 'rejected'} by {who}")
    return answer.approved


async def clicked(run: str, button: str, user: str) -> None:
    """What your endpoint for clicks does, after it has checked the signature of the chat."""
    await app.get(run, release).decide("release", approved=button == "approve", by=user)


if __name__ == "__main__":
    print(app.run(release("1.4.0"), id="release-1.4.0"))
