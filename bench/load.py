"""``python -m bench.load``: the same POST over keep-alive connections, each with one request under way at a time.

One generator for every system, in a process of its own, so that nobody's client library is measured. Only the standard
library is imported, because the peers' environments run it too.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from urllib.parse import urlsplit

from bench.measure import ROOT, Sample, latencies_of

CONNECTIONS = 64
HEADERS_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it. A request that was not accepted ends the generator with an error, so all of these were."""

    seconds: float
    each: list[float]
    """How long every answer took, in seconds."""


def pour(url: str, body: str, n: int, connections: int = CONNECTIONS) -> Load:
    """Send ``n`` requests from a fresh process and wait for their answers."""
    command = [sys.executable, "-m", "bench.load", url, body, str(n), str(connections)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-600:])
    return Load(**json.loads(done.stdout))


def accepted_of(load: Load, *, finished_seconds: float, cpu_seconds: float) -> list[Sample]:
    """The figures of starts whose runs have all ended: how many were accepted per second, how long each answer took.

    How many were accepted and carried out per second is a figure of its own, because what was accepted may be put off.
    """
    n = len(load.each)
    return [
        Sample("ingress", "accepted_per_s", n / load.seconds, n),
        Sample("ingress", "finished_per_s", n / finished_seconds, n),
        *latencies_of("ingress", load.each),
        Sample("ingress", "cpu_us_per_run", cpu_seconds / n * 1e6, n),
    ]


class _Caller(asyncio.Protocol):
    """One connection: the next request goes out when the answer to the last one is complete."""

    def __init__(self, request: bytes, left: list[int], each: list[float], over: asyncio.Future[None]) -> None:
        self._request, self._left, self._each, self._over = request, left, each, over
        self._read = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if not self._left[0]:
            self._transport.close()
            return
        self._left[0] -= 1
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, rest = self._read.partition(HEADERS_END)
        if not end or len(rest) < _length(head):
            return
        self._each.append(time.perf_counter() - self._sent)
        self._read = b""
        if not head.startswith(b"HTTP/1.1 2"):
            self._fail(f"{head[:200]!r} {rest[:300]!r}")
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._over.done():
            missing = self._left[0]
            self._over.set_result(None) if not missing else self._fail(f"closed with {missing} to send: {exc}")

    def _fail(self, why: str) -> None:
        if not self._over.done():
            self._over.set_exception(RuntimeError(why))


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise RuntimeError(f"an answer without a length: {head[:200]!r}")


def place_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def _request(url: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    head = [
        f"POST {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + HEADERS_END + body


async def _poured(url: str, body: str, n: int, connections: int) -> Load:
    loop = asyncio.get_running_loop()
    request, left, each = _request(url, body.encode()), [n], list[float]()
    overs = [loop.create_future() for _ in range(connections)]
    began = time.perf_counter()
    for over in overs:
        await loop.create_connection(partial(_Caller, request, left, each, over), *place_of(url))
    await asyncio.gather(*overs)
    seconds = time.perf_counter() - began
    assert len(each) == n, f"{len(each)} of {n} answers"
    return Load(seconds, each)


def open_files_many() -> None:
    """As many connections as the system lets a process have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("url")
    parser.add_argument("body")
    parser.add_argument("n", type=int)
    parser.add_argument("connections", type=int)
    given = parser.parse_args()
    open_files_many()
    print(json.dumps(asdict(asyncio.run(_poured(given.url, given.body, given.n, given.connections)))))


if __name__ == "__main__":
    main()
