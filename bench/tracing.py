"""``python -m bench.tracing``: what traces cost. W2 in one process, with traces and without, in turns.

The spans go to a receiver in another process, which only reads them. The ratio is of CPU time of the process that
hosts; its threads count, those of the receiver do not.
"""

import argparse
import http.server
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection

PROGRAM = """
import asyncio, gc, resource, sys, time
import weft

app = weft.App("sqlite:///" + sys.argv[1] + "/weft.db")

@app.step
async def noop() -> dict[str, str]:
    return {"ok": "yes"}

@app.workflow
async def sequence(ctx: weft.Context, n: int) -> None:
    for _ in range(n):
        await noop()

async def runs(n: int) -> None:
    handles = [await app.start(sequence(3)) for _ in range(n)]
    for handle in handles:
        await handle.result()

def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

async def main() -> None:
    n = int(sys.argv[2])
    async with app:
        await runs(n // 4)
        gc.collect()
        before, began = cpu(), time.perf_counter()
        await runs(n)
        print((cpu() - before) / n * 1e6, (time.perf_counter() - began) / n * 1e6, flush=True)

asyncio.run(main())
"""


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


def measure(runs: int, **variables: str) -> tuple[float, float]:
    """Return microseconds of CPU and of time per run, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        command = [sys.executable, "-c", PROGRAM, folder, str(runs)]
        done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True)
        cpu, took = done.stdout.split()
        return float(cpu), float(took)


def main() -> None:
    """Measure in turns, and print medians and ratios."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--runs", type=int, default=2_000)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=_receive, args=(there,), daemon=True)
    receiver.start()
    to = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{here.recv()}"}
    only_traces = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    kinds = {
        "nothing": {},
        "traces": to | only_traces,
        "traces, left out": to | only_traces | {"OTEL_TRACES_SAMPLER": "always_off"},
        "traces, metrics and logs": to,
    }
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(given.rounds):
        for kind, variables in kinds.items():
            found[kind].append(measure(given.runs, **variables))
            time.sleep(0.1)
    for kind, samples in found.items():
        cpu = statistics.median(sample[0] for sample in samples)
        took = statistics.median(sample[1] for sample in samples)
        ratios = [sample[0] / plain[0] for sample, plain in zip(samples, found["nothing"], strict=True)]
        walls = [sample[1] / plain[1] for sample, plain in zip(samples, found["nothing"], strict=True)]
        print(
            f"{kind:26} {cpu:7.0f} µs CPU {took:7.0f} µs per run, "
            f"ratio {statistics.median(ratios):.3f} CPU {statistics.median(walls):.3f} time"
        )
    receiver.terminate()


if __name__ == "__main__":
    main()
