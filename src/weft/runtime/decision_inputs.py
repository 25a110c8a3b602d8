"""The inputs of a decision that no host makes: blobs and results of scripts, loaded as the decision asks for them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Raw

from weft.core import values
from weft.core.events import AnyEvent
from weft.core.run.env import Env, MissingInputs, PastEvent
from weft.ports.blobs import Blobs
from weft.runtime.language import LANGUAGE
from weft.runtime.schema_check import check_schema

T = TypeVar("T")
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function in a thread."""


class DecisionInputs:
    """The environment of one decision on a copy of a run. Large values are kept here until they are written."""

    def __init__(
        self,
        blobs: Blobs,
        now: int,
        past: Sequence[PastEvent] | None,
        read_versions: Callable[[Sequence[str]], Awaitable[None]],
        *,
        patches_max: int,
    ) -> None:
        self._blobs = blobs
        self._loaded: dict[str, bytes] = {}
        self._kept: dict[str, bytes] = {}
        self._read_versions = read_versions
        self._past = past if past is None else list(past)
        self.env = Env(
            now=now,
            check=check_schema,
            blob=self._loaded.get,
            keep=self._keep_value,
            log=lambda: self._past,
            patches_max=patches_max,
        )

    def know(self, blobs: Mapping[str, bytes]) -> None:
        """Add blobs that are in memory, by digest."""
        self._loaded.update(blobs)

    def record(self, events: Sequence[AnyEvent]) -> None:
        """Add events that were decided to the log that the next decision sees."""
        if self._past is not None:
            self._past += [PastEvent(self.env.now, event) for event in events]

    async def decided(self, decide: Callable[[Env], T], in_thread: InThread | None = None) -> T:
        """Return what is decided. Loads whatever the decision lacks. Raises NotFound, Corrupt.

        A decision that may be long is made ``in_thread``, so that other runs go on meanwhile.
        """
        while True:
            try:
                return decide(self.env) if in_thread is None else await in_thread(lambda: decide(self.env))
            except MissingInputs as missing:
                await self._load_missing(missing)

    async def _load_missing(self, missing: MissingInputs) -> None:
        await self._read_versions(missing.versions)
        for digest in missing.blobs:
            self._loaded[digest] = await self._blobs.get(digest)
        for question in missing.questions:
            await asyncio.to_thread(LANGUAGE.answer, question)

    def _keep_value(self, raw: bytes) -> Raw:
        sealed = values.seal_inline(raw)
        if sealed is not None:
            return Raw(sealed)
        digest = hashlib.sha256(raw).hexdigest()
        self._kept[digest] = raw
        return Raw(values.blob_ref(digest, len(raw)))

    async def write(self) -> list[str]:
        """Write the large values, so that events can refer to them. Returns their digests."""
        return [await self._blobs.put(raw) for raw in self._kept.values()]
