import asyncio
import json
import socket
from pathlib import Path

import aiohttp
import pytest
import uvicorn
from shop import shop


async def play() -> tuple[list[str], str]:
    """Order in a real server, and read the live lines of the page as a browser does."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(shop, log_config=None, ws="none"))
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        async with aiohttp.ClientSession(url) as browser:
            async with browser.post("/orders", json={"item": "tea", "address": "Kiel"}) as answer:
                placed = await answer.json()
            async with browser.get(placed["page"]) as answer:
                page = await answer.text()
            lines: list[str] = []
            async with browser.get(f"/weft/api/v1/runs/{placed['order']}/streams/progress/live") as live:
                kind = ""
                async for raw in live.content:
                    line = raw.decode().rstrip("\n")
                    if line.startswith("event: "):
                        kind = line.removeprefix("event: ")
                    elif line.startswith("data: ") and kind == "chunk":
                        lines.append(json.loads(line.removeprefix("data: "))["chunk"])
            return lines, page
    finally:
        server.should_exit = True
        await serving
        bound.close()


def test_the_page_shows_the_order_as_it_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines, page = asyncio.run(play())
    assert lines == ["we got your order", "it is packed", "box of tea is on its way to Kiel"]
    assert "streams/progress/live" in page
