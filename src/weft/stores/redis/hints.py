"""Hints over a channel of Redis: a process publishes one after its commit, and hosts hear it within milliseconds.

Whoever was disconnected acts as if it had heard one, and as long as it is disconnected or Redis is slow, every poll
counts as one. So nothing depends on Redis but the delay (docs/redis.md#wake-ups).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any

from redis.asyncio.client import PubSub

from weft.stores.redis.client import (
    ANSWER_SECONDS,
    CALL_SECONDS,
    Namespace,
    Outage,
    disconnect,
    in_time,
    new_client,
)
from weft.stores.redis.task_end import end_tasks

log = logging.getLogger("weft")

PING_SECONDS = 1.0
"""How often a silent server is asked whether it is there."""
PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.1, 2.0
WAKE_SECONDS_MIN = 0.01
"""Hints wake a host at most this often, because each wake-up is a query of the store."""
CLOSE_SECONDS = 0.5
"""How long a process that ends waits for its last hint to be sent."""
POLLING = "until it is back, hosts find the work of others by polling"


class RedisHints:
    """Publishes hints of this process, and hears those of others."""

    def __init__(self, url: str, namespace: Namespace) -> None:
        self._namespace = namespace
        self._sender_id = secrets.token_hex(8).encode()
        self._client = new_client(url)
        self._outage = Outage(url, POLLING)
        self._sending: asyncio.Task[None] | None = None
        self._again = False
        self._asks: set[str] = set()
        """The runs whose owners are asked to drain them."""
        self._listening: asyncio.Task[None] | None = None
        self._heard: Callable[[], None] = lambda: None
        self._asked: Callable[[str], None] = lambda _: None
        self._waking: asyncio.TimerHandle | None = None
        self._woke_at = 0.0
        self._channel: str | None = None
        self.hears = False
        """Whether hints of others arrive. Never true before ``listen``."""

    # --- sending --------------------------------------------------------------------------------------------------

    def send(self) -> None:
        """Publish a hint soon. Several calls may become one hint. Call it after the commit."""
        self._again = True
        self._send_soon()

    def ask_to_drain(self, uid: str) -> None:
        """Ask the owner of a run to drain it soon."""
        self._asks.add(uid)
        self._send_soon()

    def _send_soon(self) -> None:
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_hints())

    async def _send_hints(self) -> None:
        try:
            while self._again or self._asks:
                message = self._sender_id
                if self._again:
                    self._again = False
                else:
                    message += b" " + self._asks.pop().encode()
                await self._client.publish(await self._channel_name(), message)
        except Exception as error:  # noqa: BLE001 - whatever it is, other hosts will poll
            log.debug("weft: could not send a hint to other hosts (%s)", error)
        finally:
            self._sending = None

    async def _channel_name(self) -> str:
        if self._channel is None:
            self._channel = f"weft:{await self._namespace()}:wake"
        return self._channel

    # --- hearing --------------------------------------------------------------------------------------------------

    def listen(self, heard: Callable[[], None], asked: Callable[[str], None]) -> None:
        """Call ``heard`` for hints of others from now on, at most once in ``WAKE_SECONDS_MIN``.

        ``asked`` is called with each run that somebody wants its owner to drain.
        """
        self._heard, self._asked = heard, asked
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen_forever())

    async def _listen_forever(self) -> None:
        pause = PAUSE_SECONDS_FIRST
        while True:
            try:
                async with self._client.pubsub() as channel:
                    await self._subscribe_to_channel(channel)
                    pause = PAUSE_SECONDS_FIRST
                    await self._read_messages(channel)
            except Exception as error:  # noqa: BLE001 - whatever it is, this host polls
                self._outage.begins(error)
            finally:
                self.hears = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _subscribe_to_channel(self, channel: PubSub) -> None:
        async with asyncio.timeout(CALL_SECONDS):
            await channel.subscribe(await self._channel_name())
            if await channel.get_message(timeout=CALL_SECONDS) is None:
                raise TimeoutError("it did not confirm the subscription")
        await self._ping_server(channel)
        self.hears = True
        self._outage.ends()
        self._on_hint()  # others may have sent hints before

    async def _read_messages(self, channel: PubSub) -> None:
        """Read messages until the connection fails."""
        while True:
            message = await channel.get_message(timeout=PING_SECONDS)
            if message is None:
                await self._ping_server(channel)
            else:
                self._on_message(message)

    async def _ping_server(self, channel: PubSub) -> None:
        """Raise TimeoutError if the server does not answer in time."""
        await channel.ping()
        while True:
            answer = asyncio.ensure_future(channel.get_message(timeout=CALL_SECONDS))
            try:
                if not await in_time(answer):
                    raise TimeoutError(f"it did not answer within {ANSWER_SECONDS * 1000:.0f} ms")
                message = answer.result()
            finally:
                await end_tasks(answer)
            if message is not None and message["type"] == "pong":
                return
            if message is not None:
                self._on_message(message)

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":  # a second time, if the client has connected again by itself
            self._on_hint()
        elif message["type"] == "message":
            sender, _, uid = message["data"].partition(b" ")
            if uid:
                self._asked(uid.decode(errors="replace"))
            elif sender != self._sender_id:
                self._on_hint()

    def _on_hint(self) -> None:
        if self._waking is None:
            loop = asyncio.get_running_loop()
            self._waking = loop.call_at(max(loop.time(), self._woke_at + WAKE_SECONDS_MIN), self._report_hints)

    def _report_hints(self) -> None:
        self._waking = None
        self._woke_at = asyncio.get_running_loop().time()
        self._heard()

    # --- end ------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Wait for hints on their way, though not for a server that does not answer, and disconnect."""
        if self._listening is not None:
            await end_tasks(self._listening)
        if self._waking is not None:
            self._waking.cancel()
        if self._sending is not None and not await in_time(self._sending, CLOSE_SECONDS):
            await end_tasks(self._sending)
        await disconnect(self._client)
