"""``python -m bench.neighbours``: what ordinary callers of ``weft serve`` notice of attackers and of a full disk.

Each attack meets a server of its own, over SQLite: callers are measured while it is quiet and then beside the attack. A
call is late by what it took from the moment it was due. Server, callers and attacker share the machine.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.attacks import ATTACKS, BEGUN
from bench.calls import Call, Caller, Heard, call_for
from bench.measure import ROOT, SCRATCH
from bench.workloads.weft_ingress import Server, rss_mb_most, serving

PER_SECOND = 40
WARM_SECONDS = 2.0
RATIO_MAX = 5.0
RSS_MB_MAX = 300.0
REFUSED_MS_MAX = 5_000.0
READY_SECONDS_MAX = 60.0
SLOW_ORDERS = 50
DISK = "64m"
APP = "bench/workloads/weft_neighbours.py"
FULL = "full disk"

START, READ, HEALTH, REFUSED = "start and result", "GET a run", "GET /healthz", "start, refused"


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of call, quiet and beside an attack."""

    attack: str
    call: str
    calls: int
    quiet_p99_ms: float
    beside_p99_ms: float
    rss_mb: float

    @property
    def ratio(self) -> float:
        return self.beside_p99_ms / self.quiet_p99_ms

    @property
    def met(self) -> bool:
        in_time = self.beside_p99_ms <= REFUSED_MS_MAX if self.call == REFUSED else self.ratio <= RATIO_MAX
        return in_time and self.rss_mb < RSS_MB_MAX


@dataclass(slots=True)
class Found:
    rows: list[Row]
    notes: list[str]


class Customers:
    """The ordinary callers of one server."""

    def __init__(self, server: Server) -> None:
        self._caller = Caller(server.url)
        self.accepted: list[str] = []

    async def prepare(self) -> None:
        await self._caller.ask("POST", "/api/v1/runs", {"workflow": "order", "id": "fixed", "input": {"number": 1}})

    async def start(self, workflow: str = "order") -> int:
        body = {"workflow": workflow, "input": {"number": 1}}
        status, answer = await self._caller.ask("POST", "/api/v1/runs", body)
        if status == 201:
            self.accepted.append(answer["id"])
        return status

    async def started(self) -> str | None:
        status = await self.start()
        return str(status) if status != 201 else await self.ended(self.accepted[-1])

    async def ended(self, run: str) -> str | None:
        """Wait for a run; None if it has completed."""
        status, answer = await self._caller.ask("GET", f"/api/v1/runs/{run}/result?wait=30")
        return None if status == 200 and answer["status"] == "completed" else f"{status} {answer.get('status')}"

    async def refused(self) -> str | None:
        status = await self.start()
        return None if status == 503 else str(status)

    async def read(self, path: str) -> str | None:
        status, _ = await self._caller.ask("GET", path)
        return None if status == 200 else str(status)

    def calls(self, *, full: bool = False) -> dict[str, Call]:
        reads: dict[str, Call] = {
            READ: partial(self.read, "/api/v1/runs/fixed"),
            HEALTH: partial(self.read, "/healthz"),
        }
        return {REFUSED: self.refused, **reads} if full else {START: self.started, **reads}


async def quiet(customers: Customers, seconds: float) -> Heard:
    await customers.prepare()
    await call_for(WARM_SECONDS, PER_SECOND, customers.calls())
    return await call_for(seconds, PER_SECOND, customers.calls())


async def beside(customers: Customers, attack: str, url: str, seconds: float) -> tuple[Heard, str]:
    """Measure while an attacker is at work; what callers got, and what the attacker got."""
    attacker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.attacks", attack, url, str(seconds),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert attacker.stdout is not None
    assert (await attacker.stdout.readline()).decode().strip() == BEGUN
    heard = await call_for(seconds, PER_SECOND, customers.calls())
    said = (await attacker.stdout.read()).decode().strip()
    await attacker.wait()
    return heard, said


def rows_of(attack: str, before: Heard, after: Heard, rss_mb: float) -> list[Row]:
    found = []
    for call, taken in after.seconds.items():
        was = before.p99_ms(call if call in before.seconds else START)
        found.append(Row(attack, call, len(taken), was, after.p99_ms(call), rss_mb))
    return found


def notes_of(attack: str, *heards: Heard) -> list[str]:
    return [f"{attack}: {count} times {wrong}" for heard in heards for wrong, count in heard.wrong.items()]


def attacked(attack: str, seconds: float) -> Found:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch, serving(Path(scratch), APP) as server:

        async def measure() -> tuple[Heard, Heard, str]:
            customers = Customers(server)
            before = await quiet(customers, seconds)
            return before, *await beside(customers, attack, server.url, seconds)

        before, after, said = asyncio.run(measure())
        rows = rows_of(attack, before, after, rss_mb_most(server.pid))
        return Found(rows, [f"{attack}: the attacker saw {said}", *notes_of(attack, before, after)])


# --- a full disk --------------------------------------------------------------------------------------------------


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of a few megabytes. Raises OSError where none can be mounted."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as place:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode:
            raise OSError(mounted.stderr.strip())
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """No room is left there."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 10, 1):
            with suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    try:
        yield
    finally:
        filler.unlink()


async def _until_ready(customers: Customers) -> float:
    began = time.monotonic()
    while await customers.read("/readyz") is not None:
        if time.monotonic() - began > READY_SECONDS_MAX:
            raise RuntimeError("the server is not ready again after its disk has room")
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def full_disk(seconds: float) -> Found:
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk())
        except OSError as error:
            return Found([], [f"{FULL}: not measured, no file system can be mounted: {error}"])
        server = stack.enter_context(serving(disk, APP))

        async def measure() -> tuple[Heard, Heard, list[str]]:
            customers = Customers(server)
            before = await quiet(customers, seconds)
            await asyncio.gather(*(customers.start("slow_order") for _ in range(SLOW_ORDERS)))
            with filled(disk):
                after = await call_for(seconds, PER_SECOND, customers.calls(full=True))
                readiness = await customers.read("/readyz")
            ready = await _until_ready(customers)
            ends = await asyncio.gather(*(customers.ended(run) for run in customers.accepted))
            notes = [
                f"{FULL}: /readyz said {readiness}; it was ready {ready:.1f} s after there was room",
                f"{FULL}: {ends.count(None)} of {len(ends)} accepted runs completed, {SLOW_ORDERS} of them under way",
            ]
            last = await customers.started()
            return before, after, notes if last is None else [*notes, f"{FULL}: a start afterwards got {last}"]

        before, after, notes = asyncio.run(measure())
        return Found(rows_of(FULL, before, after, rss_mb_most(server.pid)), [*notes, *notes_of(FULL, before, after)])


# --- what comes of it ---------------------------------------------------------------------------------------------


def print_table(found: Found) -> None:
    head = ("attack", "call", "calls", "p99 quiet", "p99 beside", "ratio", "RSS", "bar")
    print("{:<12}{:<18}{:>6}{:>12}{:>12}{:>8}{:>10}  {}".format(*head))
    for row in found.rows:
        verdict = "met" if row.met else "MISSED"
        print(
            f"{row.attack:<12}{row.call:<18}{row.calls:>6}{row.quiet_p99_ms:>9.1f} ms{row.beside_p99_ms:>9.1f} ms"
            f"{row.ratio:>8.2f}{row.rss_mb:>7.0f} MB  {verdict}"
        )
    print(*found.notes, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours", description=__doc__)
    every = [*ATTACKS, FULL.replace(" ", "-")]
    parser.add_argument("--only", default=",".join(every), metavar="NAMES", help=f"of {', '.join(every)}")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each phase is (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    found = Found([], [f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"])
    for name in given.only.split(","):
        one = attacked(name, given.seconds) if name in ATTACKS else full_disk(given.seconds)
        found.rows += one.rows
        found.notes += one.notes
    if given.json:
        rows = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in found.rows]
        print(json.dumps({"rows": rows, "notes": found.notes}, indent=1))
    else:
        print_table(found)
    sys.exit(0 if all(row.met for row in found.rows) else 1)


if __name__ == "__main__":
    main()
