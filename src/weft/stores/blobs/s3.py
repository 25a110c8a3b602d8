"""Store the content of blobs in S3 or a compatible service. Keys and region come from the environment (``AWS_…``).

The URL is ``s3://bucket/prefix?endpoint=https://s3.example&region=eu-central-1``. The library's synchronous calls run
in threads, because its asynchronous calls can abort the interpreter at exit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from weft.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from obstore.store import S3Config

T = TypeVar("T")

_OPTIONS = {"endpoint", "region"}


class S3Content:
    """The content of blobs in objects of a bucket."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise UsageError(
                f"{url!r} has the unknown option {unknown[0]!r}.", hint="The options are endpoint and region."
            )
        self._location = f"s3://{parts.netloc}{parts.path}"
        plain_http = options.get("endpoint", "").startswith("http://")
        self._store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config=cast("S3Config", options),
            client_options={"allow_http": plain_http, "timeout": "30s"},
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=20)},
        )

    async def write(self, digest: str, data: bytes) -> None:
        await self._in_thread(lambda: obstore.put(self._store, digest, data))

    async def read(self, digest: str) -> bytes | None:
        def work() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, digest).bytes())
            except FileNotFoundError:
                return None

        return await self._in_thread(work)

    async def has(self, digest: str) -> bool:
        def work() -> bool:
            try:
                obstore.head(self._store, digest)
            except FileNotFoundError:
                return False
            return True

        return await self._in_thread(work)

    async def delete(self, digest: str) -> None:
        def work() -> None:
            try:
                obstore.delete(self._store, digest)
            except FileNotFoundError:
                return

        await self._in_thread(work)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        with self._translate_errors():
            return await asyncio.to_thread(work)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise Unavailable(
                f"A request to {self._location} failed ({error}).",
                hint="Check the endpoint, the keys and their permissions.",
            ) from error
