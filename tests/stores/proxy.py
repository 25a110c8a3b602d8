"""A wire between a store and its Postgres server that can be cut at the worst moment."""

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum
from pathlib import Path

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Cut(Enum):
    """When the wire goes: before the server hears of it, or after it has done it and before the client hears."""

    BEFORE = "before"
    AFTER = "after"


class Proxy:
    """Passes on what comes in on a port of this machine, until ``judge`` says to cut.

    ``judge`` is asked for every piece of a client's talk after its greeting; None lets it pass.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.judge: Callable[[bytes], Cut | None] = lambda _data: None
        self.cuts = 0

    async def open(self) -> int:
        """The port."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for task in list(self._links):
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    def cut_next(self, how: Cut) -> None:
        """Cut once, at the next piece that asks the server to do something."""

        def judge(data: bytes) -> Cut | None:
            # Bind, execute, sync: a statement that was prepared before, so that its answer is that of a commit.
            if not data.startswith(b"B"):
                return None
            self.judge = lambda _data: None
            return how

        self.judge = judge

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            server = await asyncio.open_unix_connection(str(self._server))
        except OSError:
            writer.close()
            self._links.discard(task)
            return
        answers = asyncio.create_task(_pass_on(server[0], writer))
        try:
            await self._listen((reader, writer), server, answers)
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)
            for side in (writer, server[1]):
                side.close()
            self._links.discard(task)

    async def _listen(self, client: Streams, server: Streams, answers: asyncio.Task[None]) -> None:
        with contextlib.suppress(OSError):
            while data := await client[0].read(65536):
                how = self.judge(data)
                if how is not None:
                    self.cuts += 1
                    if how is Cut.AFTER:
                        answers.cancel()
                        await asyncio.gather(answers, return_exceptions=True)
                        server[1].write(data)
                        # The server's answer is there, and nobody hears it.
                        await server[0].read(1)
                    client[1].transport.abort()
                    return
                server[1].write(data)
                await server[1].drain()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
