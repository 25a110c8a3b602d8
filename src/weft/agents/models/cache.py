"""Answers of models that are reused for equal requests, for models that are declared with ``cache``.

The key is made of everything that the provider would get, and of the tenant: answers are not shared between tenants.
This is a cache: if it fails, the model is asked.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable

import msgspec

from weft.agents.models.aliases import ModelAlias
from weft.core.ids import Millis, RunId, tenant_prefix
from weft.core.unstorable import to_encodable
from weft.errors import NotFound, StoreError
from weft.ports.clock import Clock
from weft.ports.memos import Memo, Memos
from weft.ports.models import ModelReply, ModelRequest, ModelUsage

log = logging.getLogger("weft")

_canonical = msgspec.json.Encoder(order="deterministic", enc_hook=to_encodable).encode
_decode = msgspec.json.Decoder(ModelReply).decode


class ReusedFrom(msgspec.Struct, frozen=True):
    """Where a reused answer comes from."""

    run: str
    at: int
    """When it was given, in milliseconds since 1970."""


class AnswerCache:
    """Finds earlier answers, and keeps new ones."""

    def __init__(
        self,
        memos: Memos,
        clock: Clock,
        keep: Callable[[bytes], Awaitable[bytes]],
        load: Callable[[bytes], Awaitable[bytes]],
    ) -> None:
        """``keep`` makes a reference of a value that is large, and ``load`` the value of a reference."""
        self._memos = memos
        self._clock = clock
        self._keep = keep
        self._load = load

    async def find(self, alias: ModelAlias, request: ModelRequest, run_id: str) -> tuple[ModelReply, ReusedFrom] | None:
        """Return the earlier answer to an equal request. It used no tokens."""
        if alias.cache_ms is None:
            return None
        try:
            memo = await self._memos.get(_cache_key(alias, request, run_id), now=self._clock.now_ms())
            if memo is None:
                return None
            reply = _decode(await self._load(memo.output))
        except (StoreError, NotFound, msgspec.DecodeError) as error:
            log.debug("weft: the model %s is asked because its cache cannot be read (%s)", alias.name, error)
            return None
        return msgspec.structs.replace(reply, usage=ModelUsage()), ReusedFrom(memo.run, memo.at)

    async def remember(self, alias: ModelAlias, request: ModelRequest, run_id: str, reply: ModelReply) -> None:
        """Keep an answer that is complete."""
        if alias.cache_ms is None or reply.finish not in ("stop", "calls"):
            return
        now = self._clock.now_ms()
        until = Millis(now + alias.cache_ms) if alias.cache_ms else None
        try:
            output = await self._keep(_canonical(reply))
            memo = Memo(key=_cache_key(alias, request, run_id), output=output, run=RunId(run_id), at=now, until=until)
            await self._memos.put(memo)
        except StoreError as error:
            log.debug("weft: could not keep an answer of the model %s for reuse (%s)", alias.name, error)


def _cache_key(alias: ModelAlias, request: ModelRequest, run_id: str) -> str:
    asked = (
        alias.name,
        alias.model,
        alias.url,
        alias.api,
        {**alias.options, **request.options},
        request.messages,
        request.tools,
        request.output_schema,
        request.output_tokens,
    )
    return f"{tenant_prefix(RunId(run_id))}model/{hashlib.sha256(_canonical(asked)).hexdigest()}"
