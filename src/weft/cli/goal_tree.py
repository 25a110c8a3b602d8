"""Print a goal run: its plan as a tree from the goals down, with the state of each step, and the known facts."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from weft.cli.output import STYLES, SafeText, value_text
from weft.cli.tree import GLYPHS, Row, outcome_text, took_text
from weft.observe.history import History, Operation
from weft.observe.plan_tree import PlanLine, PlanTree

INDENT_MAX = 30
GLYPH_OF = {**GLYPHS, "pending": "○"}


def print_plan_tree(out: Console, tree: PlanTree, history: History, run_id: str, now: int) -> None:
    """Print the plan with the state of each step, and the known facts."""
    if tree.lines:
        operations = {operation.location: operation for operation in history.current()}
        out.print()
        out.print(_plan_table([_row(line, operations.get(line.step), run_id, now) for line in tree.lines]))
    if tree.facts:
        out.print()
        out.print(SafeText("facts", style="dim"))
        out.print(_facts_table(tree))


def _plan_table(rows: list[Row]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def _row(line: PlanLine, operation: Operation | None, run_id: str, now: int) -> Row:
    indent = "  " * (1 + min(line.depth, INDENT_MAX))
    if line.kind == "excluded":
        return SafeText.assemble(indent, ("– ", "dim"), line.step), SafeText(), SafeText(line.why, style="dim")
    if line.kind == "repeated":
        return SafeText(f"{indent}  {line.step}", style="dim"), SafeText(), SafeText("see above", style="dim")
    if operation is None:
        what = f"waits for {', '.join(line.lacks)}" if line.lacks else "not needed yet"
        pending = (f"{GLYPH_OF['pending']} ", "dim")
        return SafeText.assemble(indent, pending, line.step), SafeText(), SafeText(what, style="dim")
    glyph = (f"{GLYPH_OF.get(operation.status, '–')} ", STYLES.get(operation.status, "cyan"))
    kind = ""
    if operation.what not in ("", line.step):
        kind = f"  {operation.what if operation.kind == 'step' else operation.kind}"
    result = outcome_text(operation, run_id)
    if operation.status == "open" and line.fan_out:
        result = SafeText(f"{line.items_over:,} of {line.items:,} items, {line.items_active:,} under way", style="cyan")
    name = SafeText.assemble(indent, glyph, line.step, (kind, "dim"))
    return name, SafeText(took_text(operation, now), style="dim"), result


def _facts_table(tree: PlanTree) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True, overflow="ellipsis")
    for fact in tree.facts:
        provider = SafeText(fact.provider or "given", style="dim")
        table.add_row(SafeText(f"  {fact.name}"), SafeText(value_text(fact.value)), provider)
    more = tree.facts_total - len(tree.facts)
    if more:
        table.add_row(SafeText(f"  … {more:,} more", style="dim"), SafeText(), SafeText())
    return table
