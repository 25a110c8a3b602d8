"""Draw operations as a tree by their locations: ``pages/~3/fetch`` is below ``pages``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich.table import Table

from weft.cli.output import STYLES, SafeText, age_text, failure_text, time_text, took, value_text
from weft.core.plurals import pluralize
from weft.observe.history import History, Operation

SIBLINGS_MAX = 24
HEAD, TAIL = 6, 12
GLYPHS = {"done": "✓", "failed": "✗", "cancelled": "–", "open": "●"}


class PlaceNode(msgspec.Struct):
    """A location with its operation (None for a scope) and the locations below it."""

    name: str
    operation: Operation | None = None
    below: dict[str, PlaceNode] = {}


class TreeLine(msgspec.Struct, frozen=True):
    """One line of the tree: a location, or the number of siblings that are omitted."""

    guides: str
    name: str
    operation: Operation | None
    branches: Sequence[str] = ()
    """The status of each scope directly below: "open", "failed" or "done"."""


def build_tree(operations: Sequence[Operation]) -> PlaceNode:
    """Return the tree of all locations, below one root."""
    root = PlaceNode("")
    for operation in operations:
        node = root
        for part in operation.location.split("/"):
            node = node.below.setdefault(part, PlaceNode(part))
        node.operation = operation
    return root


def tree_lines(node: PlaceNode, guides: str = "") -> Iterator[TreeLine]:
    """Yield the lines from top to bottom. Of many siblings, only the first and the last ones are included."""
    nodes = [_merge_single_location(child) for child in node.below.values()]
    cut = len(nodes) - HEAD - TAIL if len(nodes) > SIBLINGS_MAX else 0
    for index, child in enumerate(nodes):
        if cut and HEAD <= index < HEAD + cut:
            if index == HEAD:
                yield TreeLine(guides, f"… {cut:,} more", None)
            continue
        branches = [_status_of(branch) for branch in child.below.values()] if is_map(child.operation) else ()
        yield TreeLine(guides, child.name, child.operation, branches)
        yield from tree_lines(child, f"{guides}  ")


def is_map(operation: Operation | None) -> bool:
    """Return whether an operation is a map."""
    return operation is not None and operation.kind == "map"


def _status_of(branch: PlaceNode) -> str:
    """Return the status of a branch. A branch is open while any operation in it is open."""
    statuses: set[str] = set()
    todo = [branch]
    while todo:
        node = todo.pop()
        if node.operation is not None:
            statuses.add(node.operation.status)
        todo += node.below.values()
    return "open" if "open" in statuses else "failed" if statuses & {"failed", "cancelled"} else "done"


def _merge_single_location(node: PlaceNode) -> PlaceNode:
    """Merge a scope that contains only one location with that location, so that both are on one line."""
    while node.operation is None and len(node.below) == 1:
        (child,) = node.below.values()
        node = PlaceNode(f"{node.name}/{child.name}", child.operation, child.below)
    return node


Row = tuple[SafeText, SafeText, SafeText]


def draw_tree(
    history: History,
    run_id: str,
    now: int,
    *,
    children: Mapping[str, History] | None = None,
    lines_max: int | None = None,
) -> Table:
    """Draw the tree in three columns: location, time, outcome. ``children`` has the histories of child runs by id."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    rows = list(_rows(history, run_id, now, children or {}, "  "))
    for row in rows if lines_max is None else rows[-lines_max:]:
        table.add_row(*row)
    return table


def _rows(history: History, run_id: str, now: int, children: Mapping[str, History], guides: str) -> Iterator[Row]:
    for line in tree_lines(build_tree(history.current()), guides):
        operation = line.operation
        if operation is None:
            yield SafeText(f"{line.guides}  {line.name}", style="dim"), SafeText(), SafeText()
            continue
        if operation.kind == "map":
            yield _map_row(line, operation, now)
            continue
        glyph = (GLYPHS.get(operation.status, "–"), STYLES.get(operation.status, "cyan"))
        place = SafeText.assemble(line.guides, glyph, f" {line.name}", (_kind(operation), "dim"))
        yield place, SafeText(took_text(operation, now), style="dim"), outcome_text(operation, run_id)
        if operation.child in children:
            yield from _rows(children[operation.child], operation.child, now, children, f"{line.guides}    ")


def _map_row(line: TreeLine, operation: Operation, now: int) -> Row:
    """Return the row of a map, with the number of items that are done."""
    total = int(operation.output)
    counts = Counter(line.branches)
    status = "open" if counts["open"] else "failed" if counts["failed"] else "done"
    progress = pluralize(total, "item")
    if status == "open":
        progress = f"{len(line.branches) - counts['open']:,} of {total:,}"
    glyph = (GLYPHS[status], STYLES.get(status, "cyan"))
    length = age_text(now - operation.started) if status == "open" else ""
    failed = f", {counts['failed']:,} failed" if counts["failed"] else ""
    style = "red" if status == "failed" else "cyan" if status == "open" else ""
    return (
        SafeText.assemble(line.guides, glyph, f" {line.name}"),
        SafeText(length, style="dim"),
        SafeText(progress + failed, style),
    )


def _kind(operation: Operation) -> str:
    name = operation.location.rpartition("/")[2].partition("#")[0]
    if operation.kind == name:
        return ""
    if operation.kind == "step":
        return "" if operation.what == name else f"  {operation.what}"
    if operation.kind == "loop":
        return f"  {operation.rounds} round{'s' if operation.rounds != 1 else ''}"
    if operation.kind == "child":
        return f"  run {operation.child}"
    return f"  {operation.kind}"


def took_text(operation: Operation, now: int) -> str:
    """Return how long an operation took, or how long it has been open."""
    if operation.ended is None:
        return age_text(now - operation.started)
    return took(operation.ended - operation.started) if operation.ended > operation.started else ""


def outcome_text(operation: Operation, run_id: str) -> SafeText:
    """Describe how an operation ended, or what it waits for."""
    tries = f"{operation.attempts} attempts · " if operation.attempts > 1 and operation.status != "open" else ""
    if operation.status == "failed" and operation.failure is not None:
        return SafeText(tries + failure_text(operation.failure), style="red")
    if operation.status == "open":
        return SafeText(waiting_text(operation, run_id), style="cyan")
    if operation.status != "done":
        return SafeText(f"{operation.status}: {operation.why}" if operation.why else operation.status, style="dim")
    if operation.kind in ("race", "set"):
        return SafeText(f"{operation.what} won" if operation.kind == "race" else operation.what, style="dim")
    result = time_text(int(operation.output)) if operation.kind == "now" else value_text(operation.output)
    return SafeText.assemble(
        tries + (result if result != "null" else ""), (f"  ({operation.why})" if operation.why else "", "dim")
    )


def waiting_text(operation: Operation, run_id: str) -> str:
    """Describe what an open operation waits for, and the command that would help."""
    until = f" until {time_text(operation.due)}" if operation.due else ""
    match operation.kind:
        case "step" | "undo":
            if operation.why:
                return f"{operation.why}{until}"
            if operation.idle and not operation.due:
                return operation.idle
            if operation.failure is None:
                return f"attempt {operation.attempts}" if operation.attempts > 1 else "under way"
            again = f"attempt {operation.attempts} of {operation.attempts_max}"
            again += f" at {time_text(operation.due)}" if operation.due else ""
            return f"{again}, after {failure_text(operation.failure)}"
        case "sleep":
            return f"asleep{until}"
        case "receive":
            name = operation.what.split(" or ")[0]
            return f'waits for the message "{operation.what}"{until}: weft send {run_id} {name} BODY'
        case "ask":
            return f'"{operation.what}"{until}: weft decide {run_id}:{operation.location} approve'
        case "child":
            return f"waits for {operation.child}"
    return "under way"
