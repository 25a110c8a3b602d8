"""Print the differences between two runs or versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from rich.console import Console

from weft.cli.output import SafeText, console, print_json
from weft.cli.store_access import open_service
from weft.core.durations import format_ms
from weft.core.graph.differences import ChangedParts
from weft.core.values import preview_text
from weft.documents.json_diff import ChangedValue
from weft.observe.diff import Diff, DiffService, diff_files
from weft.observe.graph_diff import DocumentDiff
from weft.observe.run_diff import Difference, TraceDiff

SHOWN_MAX = 20
TIMES_MAX = 5


async def print_diff(
    a: str, b: str, *, at_a: int | None, at_b: int | None, url: str | None, app: str | None, json: bool
) -> int:
    """Print the differences. Returns 0 if there are none, else 1."""
    found = diff_files(a, b)
    if found is None:
        async with open_service(url, app) as service:
            found = await DiffService(service).diff(a, b, at_a=at_a, at_b=at_b)
    if json:
        print_json(found)
        return 0 if found.equal else 1
    out = console()
    if found.equal:
        out.print(SafeText(f"{found.a.name} and {found.b.name} did the same." if found.runs else "They are equal."))
    elif found.runs is not None:
        _print_runs(out, found, found.runs)
    elif found.documents is not None:
        _print_documents(out, found.documents)
    return 0 if found.equal else 1


def _print_runs(out: Console, found: Diff, runs: TraceDiff) -> None:
    for mark, side in (("-", found.a), ("+", found.b)):
        out.print(
            SafeText(f"{mark} {side.name}  {side.status}, {side.seq:,} events, version {side.version}", style="dim")
        )
    if runs.first is not None:
        out.print(SafeText(f"First divergence: {runs.first.place}, {runs.first.aspect}", style="bold"))
        print_changes(out, value_lines(runs.first.changes))
    rest = [one for one in runs.changed if one != runs.first]
    if rest:
        out.print(SafeText("Changed", style="bold"))
        print_changes(out, (line for one in rest for line in _with_place(one)))
    for mark, name, places in (("-", found.a.name, runs.only_a), ("+", found.b.name, runs.only_b)):
        if places:
            out.print(SafeText(f"Only in {name}", style="bold"))
            print_changes(out, (f"  {mark} {place}" for place in places))
    if runs.times:
        out.print(SafeText("Times", style="bold"))
        for time in runs.times[:TIMES_MAX]:
            out.print(SafeText(f"  {time.place}  {format_ms(time.a_ms)} → {format_ms(time.b_ms)}"))


def _with_place(one: Difference) -> Iterator[str]:
    yield f"  {one.place}, {one.aspect}"
    for line in value_lines(one.changes):
        yield f"  {line}"


def value_lines(changes: Iterable[ChangedValue]) -> Iterator[str]:
    """Yield changed values, each before and after."""
    for change in changes:
        pointer = f"{change.pointer}  " if change.pointer else ""
        for mark, value in (("-", change.a), ("+", change.b)):
            if value is not UNSET:
                yield f"  {mark} {pointer}{preview_text(value)}"


def print_changes(out: Console, lines: Iterator[str]) -> None:
    """Print the first lines of a diff."""
    shown = list(lines)
    for line in shown[:SHOWN_MAX]:
        out.print(SafeText(line, style={"-": "red", "+": "green"}.get(line.strip()[:1], "")))
    if len(shown) > SHOWN_MAX:
        out.print(SafeText(f"  … and {len(shown) - SHOWN_MAX:,} more lines: --json", style="dim"))


def _print_documents(out: Console, found: DocumentDiff) -> None:
    _print_parts(out, "Nodes", found.nodes)
    _print_parts(out, "Edges", found.edges)
    out.print(SafeText("Operations", style="bold"))
    for operation in found.operations[:SHOWN_MAX]:
        out.print(SafeText(f"  {msgspec.json.encode(operation).decode()}"))
    if len(found.operations) > SHOWN_MAX:
        out.print(SafeText(f"  … and {len(found.operations) - SHOWN_MAX:,} more: --json", style="dim"))


def _print_parts(out: Console, title: str, parts: ChangedParts) -> None:
    lines: list[tuple[str, Sequence[Any]]] = [("+", parts.added), ("-", parts.removed), ("~", parts.changed)]
    if any(names for _, names in lines):
        out.print(SafeText(title, style="bold"))
        for mark, names in lines:
            for name in names:
                out.print(SafeText(f"  {mark} {name}"))
