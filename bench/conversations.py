"""Long conversations: ``python -m bench.conversations [TURNS]``.

An agent on SQLite talks for so many turns with a scripted model, in another process, and then waits for an approval.
Printed is what a turn writes and how much memory the process has, at four times of the conversation, with and without
the pages that SQLite keeps (at most 16 MB a connection, whatever is stored), and what it costs to wake the run in
another host: the processor time from the decision until the approved tool begins, HTTP and the commit of the decision
included. The bars are those for 800 turns.

A conversation is in memory as long as it is sent, so that without a limit it grows by what its turns say. With
``--context TOKENS`` the model has a limit, the agent shortens what it sends, and the memory is flat.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import weft
from bench.scripted_model import scripted_process

TURNS = 800
AGENT_TURNS_MAX = 1_000
WAKES = 5
WAKE_MS_MAX = 10
TURN_BYTES_MAX = 20_000
MB = 1024 * 1024
PAGE = "words " * 300
RUN = "long"
STORED_BYTES = """
import sqlite3, sys
ask = "SELECT (SELECT sum(length(body)) FROM events) + (SELECT coalesce(sum(length(data)), 0) FROM blobs)"
print(sqlite3.connect(sys.argv[1]).execute(ask).fetchone()[0])
"""
"""A process of its own reads them: two copies of SQLite in one process take away each other's locks."""


class Mark(NamedTuple):
    """The bytes that were stored, and those that the process and its copy of SQLite had, before a turn."""

    turn: int
    stored: int
    resident: int
    sqlite: int


class Talk:
    """An agent that reads a page per turn, and publishes at the end."""

    def __init__(self, folder: Path, turns: int, context: int | None = None) -> None:
        self.file = folder / "weft.db"
        self.turns = turns
        self.context = context
        self.marks: list[Mark] = []
        self.read_all = asyncio.Event()
        self.woke_at = 0.0
        self.woken = asyncio.Event()

    def app(self, url: str) -> weft.App:
        app = weft.App(f"sqlite:///{self.file}")
        app.model("fast", url=url, context=self.context)

        @app.step(effect="pure")
        async def read(page: int) -> str:
            """Read a page."""
            if page % max(1, self.turns // 4) == 0 or page == self.turns - 1:
                self._mark(page)
            if page == self.turns - 1:
                self.read_all.set()
            return f"page {page}: {PAGE}"

        @app.step(effect="irreversible")
        async def publish(title: str) -> str:
            """Publish it."""
            self.woke_at = time.process_time()
            self.woken.set()
            return "published"

        app.agent("reader", model="fast", system="You read.", tools=[read, publish], turns=AGENT_TURNS_MAX)
        return app

    def script(self) -> list[tuple[str, str]]:
        return [*(("read", f'{{"page":{n}}}') for n in range(self.turns)), ("publish", '{"title":"All"}')]

    def _mark(self, turn: int) -> None:
        stored = int(subprocess.check_output([sys.executable, "-c", STORED_BYTES, str(self.file)]))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.marks.append(Mark(turn, stored, pages * os.sysconf("SC_PAGE_SIZE"), apsw.memory_used()))

    async def talk(self) -> str:
        """Talk until the approval. Returns the place of the question."""
        with scripted_process(self.script()) as url:
            async with self.app(url) as app:
                handle: weft.Handle[Any] = await app.start("reader", {"prompt": "Read."}, id=RUN)
                await self.read_all.wait()
                while not [event async for event in handle.events() if event.kind == "ask_opened"]:
                    await asyncio.sleep(0.1)
                return f"turn/~{self.turns}/tools/0/approve"

    async def wake(self, place: str) -> float:
        """Let another host go on. Returns its milliseconds of processor time until the tool began."""
        with scripted_process([]) as url:
            async with self.app(url) as app:
                handle: weft.Handle[Any] = app.get(RUN)
                await asyncio.sleep(0.5)
                began = time.process_time()
                await handle.decide(place, approved=True, by="ann")
                await self.woken.wait()
                await handle.result()
        return (self.woke_at - began) * 1_000


def main() -> int:
    """Print the figures. Returns 1 if one is over its bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.conversations", description=__doc__)
    parser.add_argument("turns", type=int, nargs="?", default=TURNS)
    parser.add_argument("--context", type=int, metavar="TOKENS", help="the context limit of the model")
    given = parser.parse_args()
    if given.turns >= AGENT_TURNS_MAX:
        parser.error(f"an agent takes at most {AGENT_TURNS_MAX:,} turns, of which the last one publishes")
    turns, context = given.turns, given.context
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        talk = Talk(folder, turns, context)
        place = asyncio.run(talk.talk())
        per_turn = []
        for before, now in pairwise(talk.marks):
            per_turn.append((now.stored - before.stored) / (now.turn - before.turn))
            print(
                f"turns {before.turn} to {now.turn}: {per_turn[-1]:,.0f} bytes per turn; the process has "
                f"{now.resident / MB:.0f} MB, and without the pages of SQLite {(now.resident - now.sqlite) / MB:.0f} MB"
            )
        woken = []
        for number in range(WAKES):
            (folder / str(number)).mkdir()
            other = Talk(folder / str(number), turns, context)
            for file in folder.glob("weft.db*"):
                shutil.copy(file, other.file.parent)
            woken.append(asyncio.run(other.wake(place)))
    print(f"waking at turn {turns}: {min(woken):.1f} ms of processor time, the best of {WAKES} (bar {WAKE_MS_MAX})")
    return int(min(woken) > WAKE_MS_MAX or max(per_turn) > TURN_BYTES_MAX)


if __name__ == "__main__":
    sys.exit(main())
