"""``python -m tests.chaos.cuts 100``: cut Postgres sessions so often under load, and count what went wrong.

Sessions are terminated, the server is restarted at once and switched to read-only, in turn. Lost: a start that was
acknowledged and is not there. Repeated: a step with two recorded results. Stuck: a run that did not complete.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests.chaos.cutting import cut_under_load
from tests.servers import Cluster

_RUNS = "SELECT num, id, status FROM weft.runs"
_EVENTS = "SELECT run, body FROM weft.events"


class Errors(logging.Handler):
    """Keeps what the host complained of."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


async def judge(url: str, started: int) -> dict[str, int]:
    """What the tables say of the runs that were started."""
    connection = await asyncpg.connect(url)
    try:
        runs = await connection.fetch(_RUNS)
        events = await connection.fetch(_EVENTS)
    finally:
        await connection.close()
    known = {row["id"] for row in runs}
    successes: Counter[tuple[int, int]] = Counter()
    for row in events:
        event = json.loads(row["body"])
        if event["kind"] == "task_succeeded":
            successes[row["run"], event["task"]] += 1
    return {
        "runs": len(runs),
        "events": len(events),
        "lost": sum(f"c{number}" not in known for number in range(started)),
        "repeated": sum(count > 1 for count in successes.values()),
        "stuck": sum(row["status"] != "completed" for row in runs),
    }


async def storm(cluster: Cluster, cuts: int) -> dict[str, Any]:
    began = time.monotonic()
    started, completed = await cut_under_load(cluster, cuts)
    found = await judge(cluster.url(), started)
    seconds = round(time.monotonic() - began, 1)
    return {"cuts": cuts, "seconds": seconds, "started": started, "right_results": completed, **found}


def main() -> None:
    cuts = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    errors = Errors()
    logging.getLogger("weft").addHandler(errors)
    cluster = Cluster()
    try:
        cluster.start()
        found = asyncio.run(storm(cluster, cuts))
    finally:
        cluster.remove()
    found["errors_logged"] = len(errors.said)
    print(json.dumps(found, indent=1))
    print(*errors.said[:5], sep="\n", file=sys.stderr)
    bad = found["lost"] or found["repeated"] or found["stuck"] or errors.said
    sys.exit(1 if bad or found["right_results"] != found["started"] else 0)


if __name__ == "__main__":
    main()
