"""``python -m bench.key_limits [TASKS] [--keys N] [--hosts N]``: limits per key over several hosts on Postgres.

Every host starts its share of runs, each of which performs one step for one of the keys: without a limit, with one,
and with one and a ledger. One task in ten belongs to a burst for one of ten busy keys, so that limits are reached. The
cost of a limit that nobody reaches is measured besides, with all tasks spread evenly over the keys. The ledger is a
trigger in the database that writes down when every task was handed out and given back, by the clock of the server, so
it knows nothing of how limits are judged. A task that began again after a ``task_lost`` in the log of its run, because
its host stood still for longer than its lease or ended, is counted apart. Prints JSON: what the ledger shows, how fair
the other keys were served, what a task cost without the ledger, and which bars were missed. Ends with 1 if one was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

import weft
from bench import postgres
from bench.measure import ROOT

MODES = ("free", "even", "limited", "ledger")
CONCURRENCY, RATE = 4, 20
BURST, BURST_EVERY, BUSY_KEYS = 100, 1_000, 10
FAIRNESS_MAX, COST_MAX = 2.0, 1.3
STARTED_AT_ONCE = 200
STEP_SECONDS = 0.005
LEDGER = """
CREATE TABLE weft.ledger (
    what text, name text, key text, at double precision, run bigint, task bigint, attempt int, delivery int, host text
);
CREATE FUNCTION weft.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' AND NEW.host IS NOT NULL
        OR TG_OP = 'UPDATE' AND OLD.host IS NULL AND NEW.host IS NOT NULL THEN
        INSERT INTO weft.ledger SELECT 'began', NEW.limit_name, NEW.limit_key, extract(epoch FROM clock_timestamp()),
            NEW.run, NEW.task, NEW.attempt, NEW.delivery, NEW.host;
    ELSIF TG_OP = 'DELETE' AND OLD.host IS NOT NULL THEN
        INSERT INTO weft.ledger SELECT 'ended', OLD.limit_name, OLD.limit_key, extract(epoch FROM clock_timestamp()),
            OLD.run, OLD.task, OLD.attempt, OLD.delivery, OLD.host;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger AFTER INSERT OR UPDATE OR DELETE ON weft.tasks FOR EACH ROW EXECUTE FUNCTION weft.note();
"""
AGAIN = """
SELECT l.run, l.task, min(r.id) AS id, array_agg(l.delivery ORDER BY l.at) AS deliveries,
    array_agg(l.host ORDER BY l.at) AS hosts, array_agg(round(l.at::numeric, 3) ORDER BY l.at) AS times,
    ARRAY(SELECT (e.body::jsonb ->> 'delivery')::int FROM weft.events e WHERE e.run = l.run
        AND e.body::jsonb ->> 'kind' = 'task_lost' AND (e.body::jsonb ->> 'task')::bigint = l.task) AS lost
FROM weft.ledger l JOIN weft.runs r ON r.num = l.run
WHERE l.what = 'began' AND l.name IS NOT NULL GROUP BY l.run, l.task HAVING count(*) > 1
"""
"""The tasks that began more than once, and the deliveries that are due to a ``task_lost`` in the log of their run."""


def key_of(number: int, keys: int) -> int:
    """Return the key of a task: a busy one for all tasks of a burst, else one after the other."""
    burst, place = divmod(number, BURST_EVERY)
    return burst % BUSY_KEYS if place < BURST else BUSY_KEYS + number % (keys - BUSY_KEYS)


def new_app(url: str, *, limited: bool) -> weft.App:
    app = weft.App(url)
    limit = weft.Limit(concurrency=CONCURRENCY, rate=f"{RATE}/s", key="customer") if limited else None

    @app.step(limit=limit)
    async def call(customer: int) -> float:
        began = time.time()
        await asyncio.sleep(STEP_SECONDS)
        return began

    @app.workflow
    async def one(ctx: weft.Context, customer: int) -> float:
        return await call(customer)

    return app


async def host(url: str, mode: str, numbers: Iterable[int], keys: int) -> dict[str, Any]:
    """Run the tasks with these numbers; returns how long each waited, and the CPU time of this process."""
    waits: dict[int, list[float]] = defaultdict(list)
    left = iter(numbers)
    async with new_app(url, limited=mode != "free") as app:
        await (await app.start("one", {"customer": 0})).result()  # what is imported for the first task is no cost of it
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        before = resource.getrusage(resource.RUSAGE_SELF)

        async def starter() -> None:
            for number in left:
                asked, key = time.time(), number % keys if mode == "even" else key_of(number, keys)
                began = await (await app.start("one", {"customer": key})).result()
                waits[key].append(began - asked)

        await asyncio.gather(*(starter() for _ in range(STARTED_AT_ONCE)))
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"cpu": cpu, "waits": {key: found for key, found in waits.items() if key >= BUSY_KEYS}}


def cpu_of_server(url: str) -> float:
    """Return the CPU time of the server: of its processes, and of those that have ended, which their parent knows."""
    sessions = {pid: process_stat(pid) for pid in postgres.server_processes(url)}
    parents = {int(stat[1]) for stat in sessions.values() if stat}
    stats = [*sessions.values(), *(process_stat(pid) for pid in parents - sessions.keys())]
    ticks = sum(int(field) for stat in stats for field in stat[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def process_stat(pid: int) -> list[str]:
    """Return what the system says about a process, after its name; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return []


def play(url: str, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    """Play one round with fresh hosts."""
    command = [sys.executable, "-m", "bench.key_limits", str(options.tasks), "--host", mode, url]
    command += ["--keys", str(options.keys), "--hosts", str(options.hosts)]
    pipe = subprocess.PIPE
    hosts = [
        subprocess.Popen([*command, "--share", str(n)], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        for n in range(options.hosts)
    ]
    for each in hosts:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    began = time.monotonic()
    for each in hosts:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    found = [json.loads(each.communicate(timeout=3600)[0]) for each in hosts]
    seconds = time.monotonic() - began
    waits: dict[str, list[float]] = defaultdict(list)
    for one in found:
        for key, of_host in one["waits"].items():
            waits[key] += of_host
    cpu = sum(one["cpu"] for one in found)
    return {"seconds": seconds, "cpu": cpu, "waits": [statistics.mean(of_key) for of_key in waits.values()]}


async def read_ledger(url: str) -> dict[str, Any]:
    """Return the most of any key at once, the most that began in any second of the server's clock, and repetitions.

    A task may begin again if its run was told that it was lost. Everything else is a task that was handed out twice.
    """
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT what, key, at FROM weft.ledger WHERE name IS NOT NULL ORDER BY at, what DESC")
    again = await connection.fetch(AGAIN)
    await connection.close()
    after_loss = sum(len(set(one["deliveries"]) & set(one["lost"])) for one in again)
    unexplained = [one for one in again if len(one["deliveries"]) - 1 > len(set(one["deliveries"]) & set(one["lost"]))]
    running: dict[str, int] = defaultdict(int)
    recent: dict[str, list[float]] = defaultdict(list)
    most_at_once = most_in_second = begun = 0
    for what, key, at in rows:
        running[key] += 1 if what == "began" else -1
        most_at_once = max(most_at_once, running[key])
        if what == "began":
            begun += 1
            recent[key] = [*[before for before in recent[key] if before > at - 1.0], at]
            most_in_second = max(most_in_second, len(recent[key]))
    left = sum(running.values())
    return {
        "begun": begun,
        "begun_again_after_a_loss": after_loss,
        "handed_out_twice": [{name: str(value) for name, value in one.items()} for one in unexplained],
        "left": left,
        "most_at_once": most_at_once,
        "most_in_a_second": most_in_second,
    }


async def prepare(url: str, *, has_ledger: bool) -> None:
    async with new_app(url, limited=False):
        pass
    if has_ledger:
        connection = await asyncpg.connect(url)
        await connection.execute(LEDGER)
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", type=int, nargs="?", default=100_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--host", nargs=2, metavar=("MODE", "URL"), help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        mode, url = options.host
        numbers = range(options.share, options.tasks, options.hosts)
        print(json.dumps(asyncio.run(host(url, mode, numbers, options.keys))), flush=True)
        return
    results: dict[str, Any] = {}
    with postgres.server() as base:
        for mode in MODES:
            with postgres.database(base, f"limits_{mode}") as url:
                asyncio.run(prepare(url, has_ledger=mode == "ledger"))
                before = cpu_of_server(url)
                played = play(url, mode, options)
                played["server_cpu"] = cpu_of_server(url) - before
                results[mode] = played
                if mode == "ledger":
                    results["seen"] = asyncio.run(read_ledger(url))
    found = report(results, options)
    found["missed"] = missed(found)
    print(json.dumps(found, indent=2))
    sys.exit(1 if found["missed"] else 0)


def missed(found: dict[str, Any]) -> list[str]:
    """Return the bars that were missed. Limits that were never reached show nothing, so that is one of them."""
    ledger, allowed = found["ledger"], found["allowed"]
    bars = {
        "every task began once": not ledger["handed_out_twice"]
        and ledger["begun"] - ledger["begun_again_after_a_loss"] == found["tasks"] + found["hosts"],
        "nothing is left": ledger["left"] == 0,
        "at once per key": ledger["most_at_once"] <= allowed["at_once"],
        "per second and key": ledger["most_in_a_second"] <= allowed["in_a_second"],
        "a limit was reached": ledger["most_at_once"] == allowed["at_once"],
        f"fairness within {FAIRNESS_MAX}": found["fairness"]["worst_over_median"] <= FAIRNESS_MAX,
        f"CPU below {COST_MAX} of no limit, where nobody waits": found["cpu_ratio_even"] < COST_MAX,
        f"CPU below {COST_MAX} of no limit": found["cpu_ratio"] < COST_MAX,
    }
    return [bar for bar, is_met in bars.items() if not is_met]


def report(results: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return what was seen. Fairness compares the mean waits of keys, without the busy ones."""
    costs = {mode: results[mode]["cpu"] + results[mode]["server_cpu"] for mode in ("free", "even", "limited")}
    waits = sorted(results["ledger"]["waits"])
    return {
        "tasks": options.tasks,
        "keys": options.keys,
        "hosts": options.hosts,
        "allowed": {"at_once": CONCURRENCY, "in_a_second": RATE},
        "ledger": results["seen"],
        "fairness": {
            "median_wait_s": statistics.median(waits),
            "p90_over_median": waits[int(len(waits) * 0.9)] / statistics.median(waits),
            "worst_over_median": waits[-1] / statistics.median(waits),
        },
        "seconds": {mode: results[mode]["seconds"] for mode in costs},
        "cpu_ms_per_task": {mode: cost * 1000 / options.tasks for mode, cost in costs.items()},
        "of_the_server": {mode: results[mode]["server_cpu"] * 1000 / options.tasks for mode in costs},
        "time_ratio": results["limited"]["seconds"] / results["free"]["seconds"],
        "cpu_ratio_even": costs["even"] / costs["free"],
        "cpu_ratio": costs["limited"] / costs["free"],
    }


if __name__ == "__main__":
    main()
