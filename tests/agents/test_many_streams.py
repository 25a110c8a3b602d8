"""Many agents stream to as many clients, and nothing is lost when their server is killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tests import servers
from tests.agents.scripted_server import Say, Sent, delta, scripted, stream, tool_calls
from tests.server.test_live import Heard, heard
from tests.server.test_serve import WEFT

pytestmark = pytest.mark.proof

AGENTS = 200
SECONDS_MAX = 600
WORDS = ["one ", "two ", "three ", "four ", "five."]
APP = """
import weft

app = weft.App()
app.model("fast", url="{url}", retries=weft.Retry(10, "fixed", "100ms"))

@app.step(effect="pure")
async def find(n: int) -> str:
    '''Find something.'''
    return "found"

app.agent("finder", model="fast", tools=[find])
"""


def answer(sent: Sent) -> Say:
    """Call a tool, then say five words, slowly."""
    if sent.body["messages"][-1]["role"] != "tool":
        return tool_calls(("c", "find", '{"n":1}'))
    said = stream(
        *(delta(content=word) for word in WORDS),
        {"model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )
    return msgspec.structs.replace(said, pause_s=0.2)


class Client:
    """Follows the stream of one agent as a browser does: it comes back with the id of the last chunk that it has."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.chunks: list[Heard] = []
        self.connections = 0

    async def follow(self) -> None:
        while not await self._connect():
            await asyncio.sleep(0.1)

    async def _connect(self) -> bool:
        """Listen until the connection is lost, or the stream is over."""
        headers = {"Last-Event-ID": self.chunks[-1].id} if self.chunks else {}
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            async with self._session.get(self._url, headers=headers) as response:
                if response.status == 204:
                    return True
                response.raise_for_status()
                self.connections += 1
                async for event in heard(response.content):
                    if event.event == "end":
                        return True
                    assert event.event == "chunk", event
                    self.chunks.append(event)
        return False

    def text(self) -> str:
        """What the agent said in the end: a greater attempt begins its place anew."""
        said = [chunk.data for chunk in self.chunks if chunk.data["chunk"]["kind"] == "text"]
        last = max(chunk["attempt"] for chunk in said)
        return "".join(chunk["chunk"]["text"] for chunk in said if chunk["attempt"] == last)


@contextlib.asynccontextmanager
async def serving(folder: Path, port: int) -> Any:
    words = [WEFT, "serve", "app.py", "--port", str(port)]
    with (folder / "log.txt").open("ab") as log:
        running = subprocess.Popen(words, cwd=folder, stderr=log)
    try:
        yield running
    finally:
        running.kill()
        await asyncio.to_thread(running.wait)


async def _start_all(session: aiohttp.ClientSession, api: str) -> None:
    for number in range(AGENTS):
        new = {"workflow": "finder", "id": f"a-{number}", "input": {"prompt": "Go."}}
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.post(f"{api}/runs", json=new) as response:
                    assert response.status == 201, await response.text()
                    break
            await asyncio.sleep(0.1)


async def _stored(session: aiohttp.ClientSession, api: str, run: str) -> tuple[str, list[Any]]:
    async with session.get(f"{api}/runs/{run}/result?wait=20") as response:
        output = (await response.json())["output"]["output"]
    async with session.get(f"{api}/runs/{run}/streams/agent?limit=100") as response:
        return output, (await response.json())["chunks"]


async def play(folder: Path) -> list[Client]:
    port = servers.free_port()
    api = f"http://127.0.0.1:{port}/api/v1"
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        scripted(answer) as provider,
        aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        (folder / "app.py").write_text(APP.format(url=provider.url))
        clients = [Client(session, f"{api}/runs/a-{number}/streams/agent/live") for number in range(AGENTS)]
        async with serving(folder, port):
            await _start_all(session, api)
            following = [asyncio.create_task(client.follow()) for client in clients]
            # By then, some have answered, some are in the middle, and some have hardly begun.
            while sum(len(client.chunks) for client in clients) < 4 * AGENTS:
                await asyncio.sleep(0.02)
        async with serving(folder, port):
            await asyncio.gather(*following)
            for number, client in enumerate(clients):
                output, chunks = await _stored(session, api, f"a-{number}")
                assert output == client.text() == "".join(WORDS)
                assert [chunk.data for chunk in client.chunks] == chunks
    return clients


def test_many_agents_stream_to_many_clients_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    clients = asyncio.run(asyncio.wait_for(play(tmp_path), SECONDS_MAX))

    assert any(client.connections > 1 for client in clients), "nobody was listening when the server was killed"
    for client in clients:
        offsets = [int(chunk.id) for chunk in client.chunks]
        assert offsets == list(range(1, len(offsets) + 1)), "every chunk once, in order"
        assert client.chunks[-1].data["chunk"]["kind"] == "end"
