"""Medians of what was measured: a table to read, ``results.json`` to compare, and the bars with their verdicts."""

import json
import os
import platform
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import postgres_plan
from bench.bars import Bar, Look, bars
from bench.measure import Sample
from bench.systems import System

STYLES = {"G": "graph", "C": "graph", "A": "goal", "P": "goal", "S": "goal"}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: the median over ``reps`` repetitions, and the extremes."""

    system: str
    store: str
    style: str
    workload: str
    metric: str
    value: float
    n: int
    reps: int
    min: float
    max: float


class Results:
    """Collects samples rep by rep; what failed is kept as a line of text and shown, never silently left out."""

    def __init__(self) -> None:
        self._values: defaultdict[tuple[str, str, Sample], list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self.other_cpu: list[float] = []

    def add(self, system: System, samples: list[Sample]) -> None:
        for sample in samples:
            key = Sample(sample.workload, sample.metric, 0.0, sample.n, sample.style)
            self._values[system.name, system.store, key].append(sample.value)

    def rows(self) -> list[Row]:
        return sorted(
            (
                Row(
                    system=name,
                    store=store,
                    style=key.style,
                    workload=key.workload,
                    metric=key.metric,
                    value=statistics.median(values),
                    n=key.n,
                    reps=len(values),
                    min=min(values),
                    max=max(values),
                )
                for (name, store, key), values in self._values.items()
            ),
            key=lambda row: (row.workload, row.metric, row.n),
        )

    def bars(self) -> list[Bar]:
        there = [row for row in self.rows() if row.store == postgres_plan.STORE]
        elsewhere = [row for row in self.rows() if row.store != postgres_plan.STORE]
        found = bars(_look(elsewhere)) if elsewhere or not there else []
        return [*found, *(postgres_plan.bars(_look(there)) if there else ())]

    def notes(self) -> list[str]:
        """What some figures mean, in words."""
        there = [row for row in self.rows() if row.store == postgres_plan.STORE]
        return postgres_plan.notes(_look(there), os.cpu_count() or 1)


def _look(rows: list[Row]) -> Look:
    def look(system: str, workload: str, metric: str, n: int | None) -> float | None:
        """Without a size: the largest that the system was asked for, as all compare the same workload."""
        fits = [row for row in rows if (row.system, row.workload, row.metric) == (system, workload, metric)]
        style = STYLES.get(workload[0], "code")
        fits = [row for row in fits if row.style == style and n in {None, row.n}]
        return max(fits, key=lambda row: row.n).value if fits else None

    return look


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def write_json(results: Results, path: Path) -> None:
    other = results.other_cpu
    document = {
        "machine": machine() | {"other_cpu_median": round(statistics.median(other), 2) if other else None},
        "rows": [asdict(row) for row in results.rows()],
        "bars": [asdict(bar) | {"verdict": bar.verdict} for bar in results.bars()],
        "notes": results.notes(),
        "failures": results.failures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def print_tables(results: Results) -> None:
    console = Console(width=120)
    console.print(_figures(results))
    console.print(_verdicts(results.bars()))
    for note in results.notes():
        console.print(note, markup=False, highlight=False)
    about = machine()
    console.print(f"Python {about['python']}, {about['cores']} cores; medians over the repetitions of each row")
    if results.other_cpu:
        busiest, usual = max(results.other_cpu), statistics.median(results.other_cpu)
        console.print(f"cores used by others meanwhile: {usual:.2f} in the median, {busiest:.2f} at worst")
    for failure in results.failures:
        console.print(f"failed: {failure}", style="red", markup=False, highlight=False)


def _figures(results: Results) -> Table:
    table = Table(title="Weft, its peers and the limits")
    for name in ("workload", "metric", "n", "system", "store", "style"):
        table.add_column(name)
    for name in ("median", "min..max", "reps"):
        table.add_column(name, justify="right")
    group = None
    for row in results.rows():
        if group not in {None, (row.workload, row.metric)}:
            table.add_section()
        group = (row.workload, row.metric)
        extremes = f"{_short(row.min)}..{_short(row.max)}"
        about = (row.workload, row.metric, f"{row.n:,}", row.system, row.store, row.style)
        table.add_row(*about, _short(row.value), extremes, str(row.reps))
    return table


def _verdicts(found: list[Bar]) -> Table:
    table = Table(title="Bars")
    table.add_column("bar")
    for name in ("must be", "is", "verdict"):
        table.add_column(name, justify="right")
    for bar in found:
        colour = {"met": "green", "MISSED": "red"}.get(bar.verdict, "yellow")
        value = "-" if bar.value is None else _short(bar.value)
        table.add_row(bar.text, f"{bar.sign} {bar.limit:g}", value, f"[{colour}]{bar.verdict}[/{colour}]")
    return table


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
