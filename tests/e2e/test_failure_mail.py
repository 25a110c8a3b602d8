"""The failure mail of the documentation is sent: over SMTP, by a run that really fails."""

from __future__ import annotations

import asyncio
import smtplib
import sys
import types
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any, Self

import pytest

import weft
from tests.docs.test_blocks import blocks
from weft.ports.run_query import RunQuery
from weft.runtime.hooks import WORKFLOW

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"


class MailServer:
    """As much of SMTP as it takes to receive a mail. It is busy for the first ``busy`` mails."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.received: list[tuple[str, Message]] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example\r\n")
        to = ""
        while line := await reader.readline():
            verb = line[:4].upper()
            if verb == b"RCPT":
                to = line.decode().partition("<")[2].partition(">")[0]
            if verb == b"MAIL" and self.busy:
                self.busy -= 1
                writer.write(b"451 try again later\r\n")
                continue
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                body = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                self.received.append((to, message_from_bytes(body)))
            writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 OK\r\n")
            if verb == b"QUIT":
                break
        writer.close()


def documented_app(monkeypatch: pytest.MonkeyPatch) -> weft.App:
    """The first block of the page, as it stands, with an order that fails."""
    module = types.ModuleType("page_of_hooks")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("WEFT_URL", "memory://")
    exec(blocks(PAGE, "python")[0][1], module.__dict__)
    app: weft.App = module.__dict__["app"]

    @app.step(retries=0)
    async def charge() -> None:
        raise ConnectionError("the bank is away")

    @app.workflow
    async def order() -> None:
        await charge()

    return app


@pytest.mark.parametrize("busy", [0, 2])
def test_a_run_that_fails_is_mailed(monkeypatch: pytest.MonkeyPatch, busy: int) -> None:
    app = documented_app(monkeypatch)

    async def play() -> list[tuple[str, Message]]:
        async with MailServer(busy) as server, app:
            monkeypatch.setattr(smtplib.SMTP, "default_port", server.port)
            with pytest.raises(weft.RunFailed):
                await (await app.start("order", id="order-7")).result()
            async with asyncio.timeout(100):
                while not await _is_delivered(app):
                    await asyncio.sleep(0.02)
            return server.received

    ((to, mail),) = asyncio.run(play())
    assert to == "ops@example.com"
    assert str(mail["Subject"]).startswith("order-7 failed: charge")
    assert "weft explain order-7" in str(mail.get_payload())


async def _is_delivered(app: Any) -> bool:
    rows = (await app.service.search(RunQuery(workflow=WORKFLOW))).rows
    return bool(rows) and all(row.status == "completed" for row in rows)
