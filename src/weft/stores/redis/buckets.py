"""Token buckets in Redis, so that a limit holds over all servers of a deployment (docs/redis.md#limits-of-the-api).

A script takes the tokens, by the clock of the Redis server. When Redis fails or is late, callers hear so at once until
it has answered in time again: it is asked in the background, and no request waits for that.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from redis.exceptions import MovedError, NoScriptError

from weft.stores.redis.client import (
    ANSWER_SECONDS,
    CALL_SECONDS,
    Namespace,
    Outage,
    disconnect,
    in_time,
    move_client,
    new_client,
)
from weft.stores.redis.task_end import end_tasks

T = TypeVar("T")

PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.1, 2.0
SPARE_MS = 1_000
"""How long a bucket is kept after it is full again."""
COUNTING_ALONE = "until it is back, every server limits requests by itself"

TAKE = """
local rate, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(kept[1]) or burst, tonumber(kept[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate)
local given = math.min(wanted, math.floor(tokens))
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens - given), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return given
"""
TAKE_SHA = hashlib.sha1(TAKE.encode(), usedforsecurity=False).hexdigest()


class RedisBuckets:
    """Token buckets of a deployment."""

    def __init__(self, url: str, namespace: Namespace) -> None:
        """Connect when a bucket is first asked for, in the background. Until then, Redis counts as away."""
        self._namespace = namespace
        self._client = new_client(url)
        self._outage = Outage(url, COUNTING_ALONE)
        self._prefix: str | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_there = False
        """Whether Redis has answered the last question in time."""
        self._closed = False
        self._connecting: asyncio.Task[None] | None = None

    async def take(self, name: str, *, wanted: int, per_second: float, burst: float) -> int | None:
        given = None
        if self._closed:
            return None
        if self._is_there:
            given = await self._try_to_take(name, wanted=wanted, per_second=per_second, burst=burst)
            self._is_there = given is not None
        if not self._is_there and self._connecting is None:
            self._connecting = self._spawn_task(self._connect_and_ask())
        return given

    async def _connect_and_ask(self) -> None:
        """Connect, and ask until there is an answer in time."""
        pause = PAUSE_SECONDS_FIRST
        # The very same question, because a server may answer others and refuse this one. It takes nothing.
        ask = partial(self._try_to_take, "", wanted=0, per_second=1.0, burst=1.0)
        while await ask(seconds=CALL_SECONDS) is None or await ask() is None:
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
        self._outage.ends()
        self._is_there = True
        self._connecting = None

    async def _try_to_take(
        self, name: str, *, wanted: int, per_second: float, burst: float, seconds: float = ANSWER_SECONDS
    ) -> int | None:
        """Take tokens. Returns None, and notes the outage, if Redis fails or is late."""
        expires_ms = math.ceil(burst / per_second * 1000) + SPARE_MS
        call = self._spawn_task(self._take_tokens(name, per_second, burst, wanted, expires_ms))
        if not await in_time(call, seconds):
            self._outage.begins(None)
            return None
        error = call.exception()
        if error is None:
            return call.result()
        self._outage.begins(error)
        return None

    async def _take_tokens(self, name: str, *arguments: float) -> int:
        if self._prefix is None:
            self._prefix = f"weft:{{{await self._namespace()}}}:limit:"
        key = self._prefix + name
        try:
            return await self._call_script(key, *arguments)
        except MovedError as moved:
            # In a cluster all buckets are on one node. Nothing was done on this one.
            await move_client(self._client, moved.host, moved.port)
            return await self._call_script(key, *arguments)

    async def _call_script(self, key: str, *arguments: float) -> int:
        try:
            return int(await self._client.evalsha(TAKE_SHA, 1, key, *arguments))
        except NoScriptError:
            return int(await self._client.eval(TAKE, 1, key, *arguments))

    def _spawn_task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more

    async def close(self) -> None:
        self._closed = True
        while self._tasks:
            await end_tasks(*self._tasks)
        await disconnect(self._client)
