import asyncio
from typing import Any

import chat
from aiohttp import web
from chat import app, clicked, post, release, update

import weft
from weft.testing import World


class Chat:
    """A chat with a real HTTP API. Somebody clicks as soon as a message with buttons is posted."""

    def __init__(self, button: str) -> None:
        self.button = button
        self.messages: list[dict[str, Any]] = []
        self.clicks: set[asyncio.Task[None]] = set()

    async def posted(self, request: web.Request) -> web.Response:
        message = await request.json()
        self.messages.append(message)
        self.clicks.add(asyncio.create_task(self.click(message["value"])))
        return web.json_response({"id": len(self.messages) - 1})

    async def click(self, run: str) -> None:
        while True:
            try:
                return await clicked(run, self.button, "ann")
            except weft.Refused:  # the question comes after the message
                await asyncio.sleep(0.01)

    async def updated(self, request: web.Request) -> web.Response:
        self.messages[int(request.match_info["id"])] |= await request.json()
        return web.Response()

    async def play(self) -> bool:
        server = web.Application()
        server.add_routes([web.post("/messages", self.posted), web.put("/messages/{id}", self.updated)])
        runner = web.AppRunner(server)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        chat.CHAT = f"http://127.0.0.1:{runner.addresses[0][1]}"
        app.url = "memory://"
        try:
            async with app:
                return await (await app.start(release("1.4.0"), id="release")).result()
        finally:
            await runner.cleanup()


def test_a_click_releases_it_and_the_message_says_who() -> None:
    room = Chat("approve")
    assert asyncio.run(room.play())
    assert room.messages[0]["text"] == "Release 1.4.0: approved by ann"


def test_a_click_on_reject_does_not() -> None:
    room = Chat("reject")
    assert not asyncio.run(room.play())
    assert room.messages[0]["text"] == "Release 1.4.0: rejected by ann"


def test_after_four_hours_of_silence_it_is_rejected() -> None:
    world = World(app)
    world.fake(post, "7")
    world.fake(update, None)
    assert world.run(release("1.4.0")) is False
    assert world.calls(update)[0].args["text"] == "Release 1.4.0: rejected by nobody in time"
