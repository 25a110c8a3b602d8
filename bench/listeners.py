"""``python -m bench.listeners``: many clients of one live stream, and one more that never reads.

Like ``bench.load`` a process of its own, with the standard library only. It says ``ready`` when all listen, and at the
end what they got.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from bench.load import open_files_many, place_of
from bench.measure import ROOT

WAIT_SECONDS = 120.0
STUCK_BYTES = 4096
READY = "ready"
_EVENT, _IS_READY, _IS_GAP = b"\nevent: ", b"event: ready\n", b"event: gap\n"


@dataclass(frozen=True, slots=True)
class Heard:
    """What the clients that read got. ``missing``: events that did not reach one of them, in all."""

    seconds: float
    missing: int


class Listeners:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def heard(self) -> Heard:
        """Wait until everybody has everything, or for long enough."""
        printed, complaints = self._process.communicate(timeout=WAIT_SECONDS + 30)
        if self._process.returncode != 0:
            raise RuntimeError(complaints.strip()[-600:])
        return Heard(**json.loads(printed))


@contextmanager
def listening(url: str, *, clients: int, events: int) -> Iterator[Listeners]:
    """``clients`` that read and one that does not, each waiting for as many events."""
    command = [sys.executable, "-m", "bench.listeners", url, str(clients), str(events)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != READY:
            raise RuntimeError(process.communicate()[1].strip()[-600:])
        yield Listeners(process)
    finally:
        process.kill()
        process.wait()


class _Client(asyncio.Protocol):
    """Counts the events it gets; a gap in them is never made up for."""

    def __init__(self, expected: int) -> None:
        loop = asyncio.get_running_loop()
        self.left = expected
        self.ready: asyncio.Future[None] = loop.create_future()
        self.complete: asyncio.Future[None] = loop.create_future()
        self._tail = b""

    def data_received(self, data: bytes) -> None:
        read = self._tail + data
        whole, end, self._tail = read.rpartition(b"\n\n")
        whole = b"\n" + whole + end
        others = whole.count(_IS_READY) + whole.count(_IS_GAP)
        if others and not self.ready.done():
            self.ready.set_result(None)
        self.left -= whole.count(_EVENT) - others
        if self.left <= 0 and not self.complete.done():
            self.complete.set_result(None)


def _request(url: str) -> bytes:
    parts = urlsplit(url)
    return f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()


def _stuck(url: str) -> socket.socket:
    """A client that asks and then never reads, with as little room for the answer as it can have."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STUCK_BYTES)
    opened.connect(place_of(url))
    opened.sendall(_request(url))
    return opened


async def _listen(url: str, clients: int, events: int) -> Heard:
    loop = asyncio.get_running_loop()
    request = _request(url)
    found: list[_Client] = []
    for _ in range(clients):
        transport, client = await loop.create_connection(lambda: _Client(events), *place_of(url))
        transport.write(request)
        found.append(client)
    await asyncio.gather(*[client.ready for client in found])
    print(READY, flush=True)
    began = time.perf_counter()
    await asyncio.wait([client.complete for client in found], timeout=WAIT_SECONDS)
    return Heard(time.perf_counter() - began, sum(max(0, client.left) for client in found))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.listeners")
    parser.add_argument("url")
    parser.add_argument("clients", type=int)
    parser.add_argument("events", type=int)
    given = parser.parse_args()
    open_files_many()
    with _stuck(given.url):
        print(json.dumps(asdict(asyncio.run(_listen(given.url, given.clients, given.events)))))


if __name__ == "__main__":
    main()
