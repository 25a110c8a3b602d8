"""Read answers of Redis that are short, and give up the connection when one is long.

The client library reads an answer to its end, however large it is.
"""

from __future__ import annotations

from redis.asyncio.connection import DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError

ANSWER_BYTES_MAX = 64 * 1024


class LongAnswer(RedisConnectionError):
    """There is an answer, and it was not read."""


class ShortAnswers(DefaultParser):  # type: ignore[misc, valid-type]  # the library chooses it when it is imported
    """A parser for a connection whose long answers do not matter."""

    _left = ANSWER_BYTES_MAX

    async def read_response(self, *args: object, **options: object) -> object:
        self._left = ANSWER_BYTES_MAX
        return await super().read_response(*args, **options)

    async def read_from_socket(self) -> bool:
        """Read a part of an answer. Raises LongAnswer."""
        if self._left <= 0:
            raise LongAnswer("The answer is long.")
        buffer = await self._stream.read(self._left)
        if not buffer:
            raise RedisConnectionError("The server has closed the connection.")
        self._left -= len(buffer)
        self._reader.feed(buffer)
        return True
