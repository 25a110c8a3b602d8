"""The streams of a Redis server, through the client library. Nothing is sent twice by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.errors import Unavailable
from weft.ports.worker_streams import NewEntry, StreamEntry, StreamsInCluster
from weft.stores.urls import shown_url

if TYPE_CHECKING:
    from redis.asyncio import Redis

GROUP = "weft"
CONSUMER = "weft"
"""All hosts read under one name, so that hosts that have left are not remembered for ever."""
ANSWER_SECONDS = 5.0
"""How long to wait for an answer of the server."""
PAGE = 500
# The library's own call leaves out where to go on.
_CLAIM = """
return redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], 'COUNT', ARGV[5], 'JUSTID')
"""
# Returns ids and tokens without the rest, which may be large.
_TOKENS = """
local found = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
local answer = {}
for _, entry in ipairs(found) do
    local token = ''
    for place = 1, #entry[2], 2 do
        if entry[2][place] == 'token' then token = entry[2][place + 1] end
    end
    answer[#answer + 1] = entry[1]
    answer[#answer + 1] = token
end
return answer
"""


class RedisStreams:
    """The streams of one server. Implements ``StreamServer``."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connected: Redis | None = None

    @property
    def _redis(self) -> Redis:
        if self._connected is None:
            # Imported here, because only a host with streams needs the client library.
            from redis.asyncio import Redis  # noqa: PLC0415
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415

            self._connected = Redis.from_url(self._url, protocol=2, retry=Retry(NoBackoff(), 0), retry_on_error=[])
        return self._connected

    async def hold(self, key: str, value: str, *, expire_ms: int | None = None) -> str:
        redis = self._redis
        if await self._answer(redis.set(key, value, nx=True, px=expire_ms)):
            return value
        held = await self._answer(redis.get(key))
        found = held.decode(errors="replace") if held is not None else ""
        if found == value and expire_ms is not None:
            await self._answer(redis.pexpire(key, expire_ms))
        return found

    async def prepare(self, streams: Sequence[str]) -> None:
        if not streams:
            return
        pipeline = self._redis.pipeline(transaction=False)
        for stream in streams:
            pipeline.xgroup_create(stream, GROUP, id="0", mkstream=True)
        for answer in await self._answer(pipeline.execute(raise_on_error=False)):
            if isinstance(answer, Exception) and not str(answer).startswith("BUSYGROUP"):
                raise self._refusal(answer)

    async def add(self, entries: Sequence[NewEntry]) -> None:
        if not entries:
            return
        pipeline = self._redis.pipeline(transaction=False)
        for entry in entries:
            fields: dict[Any, Any] = dict(entry.fields)
            pipeline.xadd(entry.stream, fields, maxlen=entry.keep, approximate=False)
        await self._answer(pipeline.execute())

    async def read(self, streams: Sequence[str], *, count: int, wait_ms: int) -> Sequence[StreamEntry]:
        wanted: dict[Any, Any] = dict.fromkeys(streams, ">")
        call = self._redis.xreadgroup(GROUP, CONSUMER, wanted, count=count, block=wait_ms)
        found = await self._answer(call, seconds=ANSWER_SECONDS + wait_ms / 1000)
        return [
            StreamEntry(stream.decode(), number.decode(), fields) for stream, part in found for number, fields in part
        ]

    async def claim_idle(self, stream: str, *, idle_ms: int, count: int) -> Sequence[StreamEntry]:
        redis = self._redis
        ids: list[str] = []
        start = "0-0"
        while len(ids) < count:
            answer = await self._answer(redis.eval(_CLAIM, 1, stream, GROUP, CONSUMER, str(idle_ms), start, str(count)))
            ids += [number.decode() for number in answer[1]]
            start = answer[0].decode()
            if start == "0-0":
                break
        pipeline = redis.pipeline(transaction=False)
        for number in ids:
            pipeline.xrange(stream, number, number)
        found = await self._answer(pipeline.execute()) if ids else []
        return [StreamEntry(stream, number.decode(), fields) for part in found for number, fields in part]

    async def remove(self, stream: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.xack(stream, GROUP, *ids)
        pipeline.xdel(stream, *ids)
        await self._answer(pipeline.execute())

    async def tokens(self, stream: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        start = "-"
        while True:
            page = await self._answer(self._redis.eval(_TOKENS, 1, stream, start, str(PAGE)))
            for number, token in zip(page[::2], page[1::2], strict=True):
                found[number.decode()] = token.decode(errors="replace")
            if len(page) < 2 * PAGE:
                return found
            start = f"({page[-2].decode()}"

    async def members(self, key: str, new: Sequence[str] = ()) -> frozenset[str]:
        pipeline = self._redis.pipeline(transaction=False)
        if new:
            pipeline.sadd(key, *new)
        pipeline.smembers(key)
        answers = await self._answer(pipeline.execute())
        return frozenset(member.decode(errors="replace") for member in answers[-1])

    async def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            await connected.aclose()

    async def _answer(self, call: Any, *, seconds: float = ANSWER_SECONDS) -> Any:
        """Return the answer to a call of the client library, whose types depend on its settings."""
        from redis.exceptions import RedisError  # noqa: PLC0415 - as above

        task = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        answer, failed = None, None
        try:
            async with asyncio.timeout(seconds):
                answer = await call
        except (RedisError, OSError, TimeoutError) as error:
            failed = error
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError  # the library may hide it behind an error or an answer
        if failed is not None:
            raise self._refusal(failed) from failed
        return answer

    def _refusal(self, error: Exception) -> Unavailable | StreamsInCluster:
        from redis.exceptions import AskError, ClusterCrossSlotError  # noqa: PLC0415 - as above

        if isinstance(error, (AskError, ClusterCrossSlotError)):  # MOVED is a kind of ASK there
            return StreamsInCluster(
                f"The Redis server at {shown_url(self._url)} is a cluster, which cannot carry streams for workers.",
                hint="Name a server that is no cluster, or take the mark from the queues: weft queue NAME --no-stream.",
            )
        return Unavailable(f"Redis does not answer: {str(error) or type(error).__name__}.")
