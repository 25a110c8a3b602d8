"""``python -m bench.tracing``: what traces cost. W2 with traces and without, in turns, in one process.

Each round hosts the same app once per kind, in an order that changes, and takes the CPU time of the whole process from
the first start until the host has ended and everything is sent. The spans go to a receiver in another process, which
only reads them. The result is the median of the ratios within rounds.
"""

import argparse
import asyncio
import gc
import http.server
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection

import weft

STEPS = 3
ONLY_TRACES = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Reads what is sent and says thanks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _receive(port: Connection) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    port.send(server.server_address[1])
    server.serve_forever()


def make_app(folder: str) -> tuple[weft.App, weft.Workflow[[int], None]]:
    """Return an app with a workflow of steps that do nothing."""
    app = weft.App(f"sqlite:///{folder}/weft.db")

    @app.step
    async def noop() -> dict[str, str]:
        return {"ok": "yes"}

    @app.workflow
    async def sequence(ctx: weft.Context, n: int) -> None:
        for _ in range(n):
            await noop()

    return app, sequence


async def play(runs: int) -> tuple[float, float]:
    """Return microseconds of CPU and of time per run, on a new host with a new store."""

    async def started(n: int) -> None:
        handles = [await app.start(sequence(STEPS)) for _ in range(n)]
        for handle in handles:
            await handle.result()

    with tempfile.TemporaryDirectory() as folder:
        app, sequence = make_app(folder)
        async with app:
            await started(50)
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            await started(runs)
            took = time.perf_counter() - began
        return (time.process_time() - cpu) / runs * 1e6, took / runs * 1e6


def measure(runs: int, variables: dict[str, str]) -> tuple[float, float]:
    """Play with these variables of the environment and no others of OpenTelemetry."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    os.environ.update(variables)
    return asyncio.run(play(runs))


def quietest(samples: list[tuple[float, float]]) -> float:
    """Return the CPU time that a quarter of the measurements stayed below: those that others disturbed least."""
    return sorted(sample[0] for sample in samples)[len(samples) // 4]


def main() -> None:
    """Measure in turns, and print medians and ratios."""
    arguments = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    arguments.add_argument("--runs", type=int, default=1_000, help="in each measurement")
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--all", action="store_true", help="also without a sample, and with metrics and logs")
    given = arguments.parse_args()
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=_receive, args=(there,), daemon=True)
    receiver.start()
    to = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{here.recv()}"}
    kinds = {"nothing": {}, "traces": to | ONLY_TRACES}
    if given.all:
        kinds["traces, left out"] = to | ONLY_TRACES | {"OTEL_TRACES_SAMPLER": "always_off"}
        kinds["traces, metrics and logs"] = to
    names = list(kinds)
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for variables in kinds.values():
        measure(200, variables)
    for _ in range(given.rounds):
        for kind in names:
            found[kind].append(measure(given.runs, kinds[kind]))
        names.reverse()
    for kind, samples in found.items():
        cpu, took = (statistics.median(sample[part] for sample in samples) for part in (0, 1))
        ratios = sorted(sample[0] / plain[0] for sample, plain in zip(samples, found["nothing"], strict=True))
        walls = [sample[1] / plain[1] for sample, plain in zip(samples, found["nothing"], strict=True)]
        quiet = quietest(samples) / quietest(found["nothing"])
        print(
            f"{kind:26} {cpu:7.0f} µs CPU {took:7.0f} µs per run, "
            f"ratio {statistics.median(ratios):.3f} CPU, {quiet:.3f} in the quietest quarters, "
            f"{statistics.median(walls):.3f} time"
        )
    receiver.terminate()


if __name__ == "__main__":
    main()
