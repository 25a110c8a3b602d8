"""Measured processes that begin at a word: they say when they are ready, and when they are done."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping

from bench.measure import ROOT

READY, DONE = "READY", "DONE"


async def say_and_wait(*words: str) -> None:
    """In the measured process: say something, and wait for the word."""
    print(*words, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


class ToldProcess:
    """A measured process, as the one sees it that measures."""

    def __init__(self, module: str, *arguments: object, env: Mapping[str, str] | None = None) -> None:
        """``env`` is added to the environment of this process."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | (env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def wait_for(self, word: str) -> str:
        """Wait until it has said this word. Returns what came after it in the line."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return line.removeprefix(word)
        raise RuntimeError(f"a measured process ended before it said {word}")

    def go(self) -> None:
        """Say the word."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
