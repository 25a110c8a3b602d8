"""A host ends although its collector is slow, and the program around it goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

import weft
from weft.ext.otel.configuration import closing_seconds


@contextlib.contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A collector that answers each connection like this, in a thread. Gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def tea() -> weft.App:
    app = weft.App("memory://")

    @app.step
    async def brew() -> str:
        print("brewing")
        return "tea"

    @app.workflow
    async def serve(ctx: weft.Context) -> str:
        return await brew()

    return app


def test_the_event_loop_goes_on_while_a_host_sends_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector answers only after a task of the same loop has seen that it was asked."""
    asked, may_answer = threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        # The host may close the connection at any moment.
        with connection, connection.makefile("rb") as file, contextlib.suppress(OSError):
            while file.readline():
                size = 0
                while line := file.readline().strip():
                    name, _, value = line.partition(b":")
                    size = int(value) if name.lower() == b"content-length" else size
                file.read(size)
                asked.set()
                may_answer.wait(60)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def look() -> None:
        while not asked.is_set():
            await asyncio.sleep(0.001)
        may_answer.set()

    async def program() -> None:
        looking = asyncio.create_task(look())
        app = tea()
        async with app:
            assert await (await app.start("serve")).result() == "tea"
        assert looking.done()

    with answering(answer) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
        asyncio.run(program())


def test_an_answer_that_never_ends_does_not_keep_a_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes byte by byte, so that no read of the exporter ever times out."""
    is_over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 20)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while not is_over.wait(0.05):
                connection.sendall(b"x")

    async def program() -> None:
        app = tea()
        async with app:
            assert await (await app.start("serve")).result() == "tea"

    with answering(answer) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
        asyncio.run(program())
        is_over.set()

    assert "the rest of the telemetry is given up" in caplog.text


@pytest.mark.parametrize(
    ("given", "seconds"), [("", 15.0), ("4", 6.0), ("nan", 15.0), ("inf", 15.0), ("-1", 15.0), ("soon", 15.0)]
)
def test_a_host_waits_for_its_collector_as_long_as_for_a_request_and_a_half(
    monkeypatch: pytest.MonkeyPatch, given: str, seconds: float
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", given)

    assert closing_seconds() == seconds
