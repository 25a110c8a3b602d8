"""Marks drawn as a tree by their places: ``pages/~3/fetch`` hangs below ``pages``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich.table import Table

from weft.cli.history import History, Mark
from weft.cli.output import STYLES, Text, age, failure_text, moment, took, value
from weft.core.counting import counted

SIBLINGS_MAX = 24
HEAD, TAIL = 6, 12
GLYPHS = {"done": "✓", "failed": "✗", "cancelled": "–", "open": "●"}


class Node(msgspec.Struct):
    """A place, with what is recorded there (or nothing: only a scope) and below it."""

    name: str
    mark: Mark | None = None
    below: dict[str, Node] = {}


class Line(msgspec.Struct, frozen=True):
    """A node and its guides, or how many siblings are left out here."""

    guides: str
    name: str
    mark: Mark | None
    branches: Sequence[str] = ()
    """How each of the scopes right below it stands: "open", "failed" or "done"."""


def rooted(marks: Sequence[Mark]) -> Node:
    """All places below one root."""
    root = Node("")
    for mark in marks:
        node = root
        for part in mark.location.split("/"):
            node = node.below.setdefault(part, Node(part))
        node.mark = mark
    return root


def lines(node: Node, guides: str = "") -> Iterator[Line]:
    """The tree from top to bottom; of many siblings only the first and the last."""
    nodes = [_folded(child) for child in node.below.values()]
    cut = len(nodes) - HEAD - TAIL if len(nodes) > SIBLINGS_MAX else 0
    for index, child in enumerate(nodes):
        if cut and HEAD <= index < HEAD + cut:
            if index == HEAD:
                yield Line(guides, f"… {cut:,} more", None)
            continue
        branches = [_standing(branch) for branch in child.below.values()] if is_map(child.mark) else ()
        yield Line(guides, child.name, child.mark, branches)
        yield from lines(child, f"{guides}  ")


def is_map(mark: Mark | None) -> bool:
    """Whether a mark is that of a map."""
    return mark is not None and mark.kind == "map"


def _standing(branch: Node) -> str:
    """A branch is open while anything in it is."""
    found: set[str] = set()
    todo = [branch]
    while todo:
        node = todo.pop()
        if node.mark is not None:
            found.add(node.mark.status)
        todo += node.below.values()
    return "open" if "open" in found else "failed" if found & {"failed", "cancelled"} else "done"


def _folded(node: Node) -> Node:
    """A scope with one thing in it is drawn on the line of that thing."""
    while node.mark is None and len(node.below) == 1:
        (child,) = node.below.values()
        node = Node(f"{node.name}/{child.name}", child.mark, child.below)
    return node


Row = tuple[Text, Text, Text]


def drawn(
    history: History,
    run_id: str,
    now: int,
    *,
    children: Mapping[str, History] | None = None,
    lines_max: int | None = None,
) -> Table:
    """The tree as columns: place, time taken, what came of it. ``children``: histories of child runs, by id."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    rows = list(_rows(history, run_id, now, children or {}, "  "))
    for row in rows if lines_max is None else rows[-lines_max:]:
        table.add_row(*row)
    return table


def _rows(history: History, run_id: str, now: int, children: Mapping[str, History], guides: str) -> Iterator[Row]:
    for line in lines(rooted(history.current()), guides):
        mark = line.mark
        if mark is None:
            yield Text(f"{line.guides}  {line.name}", style="dim"), Text(), Text()
            continue
        if mark.kind == "map":
            yield _map_row(line, mark, now)
            continue
        glyph = (GLYPHS.get(mark.status, "–"), STYLES.get(mark.status, "cyan"))
        place = Text.assemble(line.guides, glyph, f" {line.name}", (_kind(mark), "dim"))
        yield place, Text(took_text(mark, now), style="dim"), outcome(mark, run_id)
        if mark.child in children:
            yield from _rows(children[mark.child], mark.child, now, children, f"{line.guides}    ")


def _map_row(line: Line, mark: Mark, now: int) -> Row:
    """A map is as far as its branches are."""
    total = int(mark.output)
    counts = Counter(line.branches)
    status = "open" if counts["open"] else "failed" if counts["failed"] else "done"
    told = counted(total, "item")
    if status == "open":
        told = f"{len(line.branches) - counts['open']:,} of {total:,}"
    glyph = (GLYPHS[status], STYLES.get(status, "cyan"))
    length = age(now - mark.started) if status == "open" else ""
    failed = f", {counts['failed']:,} failed" if counts["failed"] else ""
    style = "red" if status == "failed" else "cyan" if status == "open" else ""
    return Text.assemble(line.guides, glyph, f" {line.name}"), Text(length, style="dim"), Text(told + failed, style)


def _kind(mark: Mark) -> str:
    own = mark.location.rpartition("/")[2].partition("#")[0]
    if mark.kind == own:
        return ""
    if mark.kind == "step":
        return "" if mark.what == own else f"  {mark.what}"
    if mark.kind == "loop":
        return f"  {mark.rounds} round{'s' if mark.rounds != 1 else ''}"
    if mark.kind == "child":
        return f"  run {mark.child}"
    return f"  {mark.kind}"


def took_text(mark: Mark, now: int) -> str:
    """How long it took, or has been under way."""
    if mark.ended is None:
        return age(now - mark.started)
    return took(mark.ended - mark.started) if mark.ended > mark.started else ""


def outcome(mark: Mark, run_id: str) -> Text:
    """What came of it, or what it waits for."""
    tries = f"{mark.attempts} attempts · " if mark.attempts > 1 and mark.status != "open" else ""
    if mark.status == "failed" and mark.failure is not None:
        return Text(tries + failure_text(mark.failure), style="red")
    if mark.status == "open":
        return Text(waiting(mark, run_id), style="cyan")
    if mark.status != "done":
        return Text(f"{mark.status}: {mark.why}" if mark.why else mark.status, style="dim")
    if mark.kind in ("race", "set"):
        return Text(f"{mark.what} won" if mark.kind == "race" else mark.what, style="dim")
    result = moment(int(mark.output)) if mark.kind == "now" else value(mark.output)
    return Text.assemble(tries + (result if result != "null" else ""), (f"  ({mark.why})" if mark.why else "", "dim"))


def waiting(mark: Mark, run_id: str) -> str:
    """What an open mark waits for, in words, with what would help."""
    until = f" until {moment(mark.due)}" if mark.due else ""
    match mark.kind:
        case "step" | "undo":
            if mark.why:
                return f"{mark.why}{until}"
            if mark.idle and not mark.due:
                return mark.idle
            if mark.failure is None:
                return f"attempt {mark.attempts}" if mark.attempts > 1 else "under way"
            again = f"attempt {mark.attempts} of {mark.attempts_max}{f' at {moment(mark.due)}' if mark.due else ''}"
            return f"{again}, after {failure_text(mark.failure)}"
        case "sleep":
            return f"asleep{until}"
        case "receive":
            return f'waits for the message "{mark.what}"{until}: weft send {run_id} {mark.what.split(" or ")[0]} BODY'
        case "ask":
            return f'"{mark.what}"{until}: weft decide {run_id}:{mark.location} approve'
        case "child":
            return f"waits for {mark.child}"
    return "under way"
