"""The streams of a Redis server, through the client library. Nothing is sent twice by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.errors import Unavailable
from weft.ports.worker_streams import ENTRY_BYTES_MAX, NewEntry, PublishedEntry, StreamEntry, StreamsInCluster
from weft.stores.redis.stream_scripts import CLAIM, PUBLISHED, READ
from weft.stores.urls import url_without_password

if TYPE_CHECKING:
    from redis.asyncio import Redis

GROUP = "weft"
CONSUMER = "weft"
"""All hosts read under one name, so that hosts that have left are not remembered for ever."""
ANSWER_SECONDS = 5.0
"""How long to wait for an answer of the server."""
PAGE = 500
ROOM_BYTES = 8 * 1024 * 1024
"""No further entry is read after this many bytes."""


class RedisStreams:
    """The streams of one server. Implements ``StreamServer``."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connected: Redis | None = None
        self._waiting: Redis | None = None
        self._turn = 0

    @property
    def _shared_client(self) -> Redis:
        if self._connected is None:
            self._connected = self._make_client()
        return self._connected

    @property
    def _waiting_client(self) -> Redis:
        """Return the client that waits for entries, and reads no more of them than that they are there."""
        if self._waiting is None:
            from weft.stores.redis.short_answers import ShortAnswers  # noqa: PLC0415 - as below

            self._waiting = self._make_client(parser_class=ShortAnswers)
        return self._waiting

    def _make_client(self, **options: Any) -> Redis:
        # Imported here, because only a host with streams needs the client library.
        from redis.asyncio import Redis  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415

        retry = Retry(NoBackoff(), 0)
        client: Redis = Redis.from_url(self._url, protocol=2, retry=retry, retry_on_error=[], **options)
        return client

    async def set_if_missing(self, key: str, value: str, *, expire_ms: int | None = None) -> str:
        redis = self._shared_client
        if await self._call_server(redis.set(key, value, nx=True, px=expire_ms)):
            return value
        held = await self._call_server(redis.get(key))
        found = held.decode(errors="replace") if held is not None else ""
        if found == value and expire_ms is not None:
            await self._call_server(redis.pexpire(key, expire_ms))
        return found

    async def prepare(self, streams: Sequence[str]) -> Sequence[str]:
        if not streams:
            return []
        others = []
        pipeline = self._shared_client.pipeline(transaction=False)
        for stream in streams:
            pipeline.xgroup_create(stream, GROUP, id="0", mkstream=True)
        answers = await self._call_server(pipeline.execute(raise_on_error=False))
        for stream, answer in zip(streams, answers, strict=True):
            if str(answer).startswith("WRONGTYPE"):
                others.append(stream)
            elif isinstance(answer, Exception) and not str(answer).startswith("BUSYGROUP"):
                raise self._refusal_error(answer)
        return others

    async def add(self, entries: Sequence[NewEntry]) -> None:
        if not entries:
            return
        pipeline = self._shared_client.pipeline(transaction=False)
        for entry in entries:
            fields: dict[Any, Any] = dict(entry.fields)
            pipeline.xadd(entry.stream, fields, maxlen=entry.keep, approximate=False)
        await self._call_server(pipeline.execute())

    async def read(self, streams: Sequence[str], *, count: int, wait_ms: int) -> Sequence[StreamEntry]:
        if not streams:
            return []
        self._turn = (self._turn + 1) % len(streams)
        streams = [*streams[self._turn :], *streams[: self._turn]]
        entries, ends = await self._take_entries(streams, count)
        if entries:
            return entries
        if not ends:
            raise Unavailable(f"None of the streams in Redis can be read: {', '.join(streams[:3])}.")
        await self._wait_for_entry(ends, wait_ms)
        return (await self._take_entries(streams, count))[0]

    async def _take_entries(self, streams: Sequence[str], count: int) -> tuple[list[StreamEntry], dict[str, str]]:
        """Return new entries. If there are none, return after which ids the next ones come.

        Streams that cannot be read are left out of both.
        """
        call = self._shared_client.eval(
            READ, len(streams), *streams, GROUP, CONSUMER, str(count), str(ROOM_BYTES), str(ENTRY_BYTES_MAX)
        )
        found, ends = await self._call_server(call)
        entries = [_make_entry(streams[place - 1], answer) for place, *answer in found]
        return entries, {streams[place - 1]: last.decode() for place, last in ends}

    async def _wait_for_entry(self, ends: Mapping[str, str], wait_ms: int) -> None:
        """Wait until there is an entry after these ids, however large it is."""
        from weft.stores.redis.short_answers import LongAnswer  # noqa: PLC0415 - as above

        after: dict[Any, Any] = dict(ends)

        async def wait() -> None:
            with contextlib.suppress(LongAnswer):
                await self._waiting_client.xread(after, count=1, block=wait_ms)

        await self._call_server(wait(), seconds=ANSWER_SECONDS + wait_ms / 1000)

    async def claim_idle(
        self, stream: str, *, idle_ms: int, count: int, bytes_max: int = ENTRY_BYTES_MAX
    ) -> Sequence[StreamEntry]:
        entries: list[StreamEntry] = []
        start, room = "0-0", ROOM_BYTES
        while len(entries) < count and room > 0:
            wanted = (GROUP, CONSUMER, str(idle_ms), start, str(count), str(room), str(bytes_max))
            cursor, found = await self._call_server(self._shared_client.eval(CLAIM, 1, stream, *wanted))
            entries += (new := [_make_entry(stream, answer) for answer in found])
            room -= sum(entry.size for entry in new if entry.size <= bytes_max)
            start = cursor.decode()
            if start == "0-0":
                break
        return entries

    async def remove(self, stream: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        pipeline = self._shared_client.pipeline(transaction=False)
        pipeline.xack(stream, GROUP, *ids)
        pipeline.xdel(stream, *ids)
        await self._call_server(pipeline.execute())

    async def published(self, stream: str) -> Mapping[str, PublishedEntry]:
        found: dict[str, PublishedEntry] = {}
        start = "-"
        while True:
            page = await self._call_server(self._shared_client.eval(PUBLISHED, 1, stream, GROUP, start, str(PAGE)))
            for number, token, is_given in page:
                found[number.decode()] = PublishedEntry(token.decode(errors="replace"), bool(is_given))
            if len(page) < PAGE:
                return found
            start = f"({page[-1][0].decode()}"

    async def members(self, key: str, new: Sequence[str] = ()) -> frozenset[str]:
        pipeline = self._shared_client.pipeline(transaction=False)
        if new:
            pipeline.sadd(key, *new)
        pipeline.smembers(key)
        answers = await self._call_server(pipeline.execute())
        return frozenset(member.decode(errors="replace") for member in answers[-1])

    async def close(self) -> None:
        connected, self._connected, self._waiting = (self._connected, self._waiting), None, None
        for client in connected:
            if client is not None:
                await client.aclose()

    async def _call_server(self, call: Any, *, seconds: float = ANSWER_SECONDS) -> Any:
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
            raise self._refusal_error(failed) from failed
        return answer

    def _refusal_error(self, error: Exception) -> Unavailable | StreamsInCluster:
        from redis.exceptions import AskError, ClusterCrossSlotError  # noqa: PLC0415 - as above

        if isinstance(error, (AskError, ClusterCrossSlotError)):  # MOVED is a kind of ASK there
            return StreamsInCluster(
                f"The Redis server at {url_without_password(self._url)} is a cluster, which cannot carry streams for "
                "workers.",
                hint="Name a server that is no cluster, or take the mark from the queues: weft queue NAME --no-stream.",
            )
        return Unavailable(f"Redis does not answer: {str(error) or type(error).__name__}.")


def _make_entry(stream: str, answer: Sequence[Any]) -> StreamEntry:
    """Return an entry as the scripts return it."""
    number, words, size = answer
    return StreamEntry(stream, number.decode(), dict(zip(words[::2], words[1::2], strict=True)), size)
