"""What the steps of pipelines cost on 100,000 rows, in processor time, and what a worker process adds.

python -m bench.tables
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from weft.pipelines import workers
from weft.pipelines.limits import TIME_S_MAX
from weft.pipelines.pipeline import read_pipeline

ROWS = 100_000
AIRLINES = [f"airline {number}" for number in range(40)]


def flights() -> list[dict[str, Any]]:
    """Make rows of six fields, 11 MB as JSON."""
    return [
        {
            "id": number,
            "airline": AIRLINES[number * 7 % 40],
            "price": (number * 7_919) % 100_000 / 100,
            "stops": number % 4,
            "code": f"o-{number:06d}",
            "at": f"2026-03-{1 + number % 28:02d}T10:{number % 60:02d}:00Z",
        }
        for number in range(ROWS)
    ]


class TableCase(NamedTuple):
    """A step and its bar in milliseconds of processor time; without a bar it is only shown."""

    name: str
    step: dict[str, Any]
    bar_ms: float | None = None


PRICES = [{"id": number, "discount": number % 5} for number in range(ROWS)]
CASES = [
    TableCase("sort, numbers", {"step": "table_sort", "field": "price"}, 120),
    TableCase("sort, texts", {"step": "table_sort", "field": "airline", "order": "desc"}, 120),
    TableCase("filter", {"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": 1}}, 7),
    TableCase("select", {"step": "table_select", "fields": ["id", "airline", "price"]}),
    TableCase("top_k", {"step": "top_k", "k": 3}),
    TableCase("group, sum", {"step": "groupby", "by": "airline", "agg": "sum", "field": "price"}, 33),
    TableCase("join", {"step": "join", "right": PRICES, "on": "id"}, 91),
    TableCase("dates, ISO 8601", {"step": "parse_date", "field": "at"}),
    TableCase("dates, format", {"step": "parse_date", "field": "at", "format": "%Y-%m-%dT%H:%M:%S%z"}),
    TableCase("regex", {"step": "regex_extract", "field": "code", "pattern": "o-([0-9]+)", "group": 1}),
    TableCase("jq", {"step": "jq_transform", "query": "map(select(.stops <= 1)) | sort_by(.price) | .[:3]"}),
]


def best_ms(call: Callable[[], object], times: int = 5) -> float:
    """Return the processor time of the fastest of several calls."""
    found = []
    for _ in range(times):
        began = time.process_time()
        call()
        found.append((time.process_time() - began) * 1_000)
    return min(found)


def main() -> int:
    """Print what every step costs. Returns 1 if one is over its bar."""
    gc.disable()  # as in the worker process, where so much data is processed
    rows = flights()
    raw = msgspec.json.encode(rows)
    print(f"{ROWS:,} rows, {len(raw) / 1e6:.1f} MB of JSON; milliseconds of processor time, the best of 5")
    over = False
    for case in CASES:
        step = read_pipeline([case.step]).steps[0].step
        took = best_ms(lambda step=step: step.apply(rows, {}), 5 if case.bar_ms else 2)
        over |= case.bar_ms is not None and took > case.bar_ms
        print(f"  {case.name:<18}{took:>9.1f}{'' if case.bar_ms is None else f'   bar {case.bar_ms:g}'}")
    pipeline = read_pipeline([{"step": "table_sort", "field": "price"}, {"step": "top_k", "k": 3}])
    workers.perform_killable(pipeline.steps, pipeline.source, b"[]", {}, TIME_S_MAX)
    began = time.perf_counter()
    workers.perform_killable(pipeline.steps, pipeline.source, raw, {}, TIME_S_MAX)
    print(f"  in a process, sort and top 3: {(time.perf_counter() - began) * 1_000:.0f} ms until its answer is here")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
