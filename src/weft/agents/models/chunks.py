"""Write the pieces of an answer to an output stream, a few together, so that a stream has no entry for every token."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from weft.ports.models import ModelChunk, ModelMessage, ResultPart
from weft.steps.strangers import without_nul

PIECE_CHARS = 1_024
PIECE_CHARS_MAX = 8_192
PIECE_SECONDS = 0.05
_TURN = re.compile(r"turn/~(\d+)(?:/|$)")


def turn_of(place: str, default: int = 0) -> int:
    """Return the turn of an agent that a place is in, as conversations number them."""
    found = _TURN.match(place)
    return int(found[1]) if found is not None else default


class ChunkWriter:
    """Collects pieces of the same kind for 50 ms or 1 KiB, and writes them as one.

    Results of tools wait as long for the first piece of the answer, so that a quick answer is written with them.
    """

    def __init__(self, emit: Callable[[dict[str, Any]], None]) -> None:
        self._emit = emit
        self._results: list[dict[str, Any]] = []
        self._kind = ""
        self._texts: list[str] = []
        self._chars = 0
        self._timer: asyncio.TimerHandle | None = None

    def add_results(self, add: Sequence[ModelMessage], turn: int) -> None:
        """Take the results of tools that the model is about to read, or their beginnings.

        ``turn`` is the turn in which the tools were called, in the order of the results.
        """
        parts = [part for message in add for part in message.parts if isinstance(part, ResultPart)]
        for number, part in enumerate(parts):
            where = {"place": f"turn/~{turn}/tools/{number}", "turn": turn}
            text = part.content[:PIECE_CHARS]
            self._results.append({"kind": "result", **where, "tool": part.name, "call": part.id, "text": text})
        if self._results:
            self._wait()

    def add(self, chunk: ModelChunk) -> None:
        """Take a piece of the answer."""
        if chunk.kind != self._kind or chunk.kind == "call":
            self.flush()
            self._kind = chunk.kind
        self._texts.append(chunk.text)
        self._chars += len(chunk.text)
        if self._chars >= PIECE_CHARS:
            self.flush()
        else:
            self._wait()

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PIECE_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for result in self._results:
            self._emit(result)
        self._results.clear()
        text = without_nul("".join(self._texts))
        self._texts.clear()
        self._chars = 0
        for first in range(0, len(text), PIECE_CHARS_MAX):
            self._emit({"kind": self._kind, "text": text[first : first + PIECE_CHARS_MAX]})
