"""How the pieces of an answer, and the results before it, become entries of a stream."""

from __future__ import annotations

import asyncio
from typing import Any

from weft.agents.models.chunks import ChunkWriter
from weft.ports.models import ModelChunk, ModelMessage, ResultPart

RESULTS = (ModelMessage(role="tool", parts=(ResultPart(id="c", name="find", content='"it"'),)),)
RESULT = {"kind": "result", "place": "turn/~3/tools/0", "turn": 3, "tool": "find", "call": "c", "text": '"it"'}


def test_results_are_written_with_the_first_piece_of_a_quick_answer() -> None:
    async def answer() -> list[list[dict[str, Any]]]:
        written: list[dict[str, Any]] = []
        chunks = ChunkWriter(written.append)
        chunks.add_results(RESULTS, 3)
        before = list(written)
        chunks.add(ModelChunk(kind="text", text="Do"))
        chunks.add(ModelChunk(kind="text", text="ne."))
        chunks.flush()
        chunks.flush()
        return [before, written]

    assert asyncio.run(answer()) == [[], [RESULT, {"kind": "text", "text": "Done."}]]


def test_results_are_written_while_the_model_is_silent() -> None:
    async def silence() -> dict[str, Any]:
        written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        ChunkWriter(written.put_nowait).add_results(RESULTS, 3)
        async with asyncio.timeout(60):
            return await written.get()

    assert asyncio.run(silence()) == RESULT
