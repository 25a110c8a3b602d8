"""Ask models in tests: over the wire, and as the built-in step."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from tests.agents.scripted_server import Say, ScriptedServer, scripted
from tests.steps.http_kit import FixedClock
from weft.agents.conversation import Conversations
from weft.agents.models.aliases import ModelAlias, ModelAliases
from weft.agents.models.cache import AnswerCache
from weft.agents.models.meter import ModelMeter
from weft.agents.models.ports import ModelPorts
from weft.agents.models.step import ModelStep
from weft.agents.models.watch import ModelWatch
from weft.authoring.models import ModelOptions, read_alias
from weft.ports.models import ModelChunk, ModelMessage, ModelReply, ModelRequest, TextPart
from weft.stores.memory import MemoryStore


class Blobs:
    """Blobs in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.content[digest] = data
        return digest

    async def get(self, digest: str) -> bytes:
        return self.content[digest]


async def _same(value: bytes) -> bytes:
    return value


class Asked:
    """A model on a scripted server, and all that it needs."""

    def __init__(self, server: ScriptedServer, alias: ModelAlias) -> None:
        self.server = server
        self.alias = alias
        self.blobs = Blobs()
        self.chunks: list[ModelChunk] = []
        self.ports = ModelPorts(ModelAliases({alias.name: alias}), FixedClock(), self.blobs.get)
        self.conversations = Conversations(self.blobs.put, self.blobs.get)
        self.held: list[tuple[str, int]] = []
        self.meter = ModelMeter()
        self.watch = ModelWatch(FixedClock(), self, self.meter)
        cache = AnswerCache(MemoryStore().memos, FixedClock(), _same, _same)
        self.step = ModelStep(self.ports, self.conversations, cache, get=self.blobs.get, watch=self.watch)

    async def hold(self, model: str, wait_ms: int) -> None:
        self.held.append((model, wait_ms))

    def until(self, model: str) -> int | None:
        return None

    async def complete(self, *messages: ModelMessage, **fields: Any) -> ModelReply:
        """Ask the model over its wire."""
        request = ModelRequest(messages=messages or (user("hello"),), **fields)
        return await self.ports.port(self.alias.name).complete(request, self.chunks.append)

    async def perform(self, **given: Any) -> dict[str, Any]:
        """Perform the step ``weft.model``."""
        raw = msgspec.json.encode({"alias": self.alias.name, **given})
        answer: dict[str, Any] = msgspec.json.decode(await self.step.perform(raw, None))  # type: ignore[arg-type]
        return answer

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.server.requests[-1].body


@contextlib.asynccontextmanager
async def asking(*answers: Say, name: str = "fast", **options: Any) -> AsyncIterator[Asked]:
    """Serve a script, and declare a model that is served by it."""
    given: ModelOptions = options  # type: ignore[assignment]
    async with scripted(*answers) as server:
        asked = Asked(server, read_alias(name, server.url, given))
        try:
            yield asked
        finally:
            await asked.ports.close()


def user(text: str) -> ModelMessage:
    return ModelMessage(role="user", parts=(TextPart(text),))


def system(text: str) -> ModelMessage:
    return ModelMessage(role="system", parts=(TextPart(text),))
