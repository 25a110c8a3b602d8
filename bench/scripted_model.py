"""A scripted model in a process of its own, so that what it costs is not counted as a cost of the agent.

``python -m bench.scripted_model PATH`` serves the script in a file of JSON: a list of tool calls ``[name, arguments]``,
one for each request. After the last, and if there are none, the answer is ``Done.`` It does not count tokens, so that
agents estimate how long their conversations are.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from tests.agents.scripted_server import Say, Sent, scripted, text, tool_calls

Script = Sequence[tuple[str, str]]
"""Names and arguments of tool calls."""


@contextlib.contextmanager
def scripted_process(script: Script) -> Iterator[str]:
    """Serve a script. Yields the URL of the model."""
    with NamedTemporaryFile(suffix=".json") as file:
        Path(file.name).write_bytes(msgspec.json.encode(script))
        command = [sys.executable, "-m", "bench.scripted_model", file.name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip()
            finally:
                process.terminate()


async def serve(script: Script) -> None:
    wanted = iter([tool_calls((f"c{n}", *call), usage=None) for n, call in enumerate(script)])

    def answer(sent: Sent) -> Say:
        if sent.body["messages"][0]["content"].startswith("Sum up"):
            return text("Pages were read.", usage=None)
        return next(wanted, text("Done.", usage=None))

    async with scripted(answer) as provider:
        print(provider.url, flush=True)
        while True:
            provider.requests.clear()  # they would be most of the memory
            await asyncio.sleep(1)


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[tuple[str, str]])))
