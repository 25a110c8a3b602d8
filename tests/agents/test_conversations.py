"""Conversations in memory: a turn reads only what is new, and of each run only the newest conversation is kept."""

from __future__ import annotations

import asyncio
import weakref

from tests.agents.model_kit import Blobs, user
from weft.agents.conversation import EMPTY, Conversations


class CountedBlobs(Blobs):
    """Blobs that count how often they are read."""

    reads = 0

    async def get(self, digest: str) -> bytes:
        self.reads += 1
        return await super().get(digest)


def test_a_turn_of_a_run_reads_nothing_of_the_turns_before_it() -> None:
    async def scene() -> None:
        blobs = CountedBlobs()
        found = Conversations(blobs.put, blobs.get)
        head = ""
        for number in range(5):
            before = await found.read(head, "r-1")
            head = (await found.append(before, [user(f"turn {number}")], run="r-1")).head
        assert blobs.reads == 0
        assert len((await found.read(head, "r-2")).messages) == 5
        assert blobs.reads == 5

    asyncio.run(scene())


def test_what_a_run_no_longer_sends_is_not_kept_in_memory() -> None:
    async def scene() -> None:
        blobs = Blobs()
        found = Conversations(blobs.put, blobs.get)
        long = EMPTY
        for number in range(5):
            long = await found.append(long, [user(f"turn {number}")], run="r-1")
        shorter = await found.append(EMPTY, [user("in short")])
        old = [weakref.ref(message) for message in long.messages]
        del long
        assert all(message() is not None for message in old)

        await found.read(shorter.head, "r-1")

        assert all(message() is None for message in old)

    asyncio.run(scene())
