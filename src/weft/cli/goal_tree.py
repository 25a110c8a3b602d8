"""A goal run on the terminal: its plan from the goals down, with how each step stands, and the facts that are known."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from weft.cli.output import STYLES, SafeText, value
from weft.cli.tree import GLYPHS, Row, outcome, took_text
from weft.core.goal.machine import GoalMachine
from weft.core.goal.plan import Plan
from weft.observe.history import History, Operation

INDENT_MAX = 30
FACTS_MAX = 40
GLYPH_OF = {**GLYPHS, "pending": "○"}


def drawn_plan(machine: GoalMachine, history: History, run_id: str, now: int) -> Table | None:
    """The tree of the plan; None before there is one."""
    if machine.plan is None:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for row in _rows(machine, machine.plan, history, run_id, now):
        table.add_row(*row)
    return table


def _rows(machine: GoalMachine, plan: Plan, history: History, run_id: str, now: int) -> Iterator[Row]:
    operations = {operation.location: operation for operation in history.current()}
    told: set[str] = set()
    # A stack of its own: plans may be deeper than Python's.
    stack = [(goal, 0) for goal in reversed(plan.goals)]
    while stack:
        step, depth = stack.pop()
        indent = "  " * (1 + min(depth, INDENT_MAX))
        left_out = plan.excluded.get(step)
        if left_out is not None:
            why = f"{left_out.why}: {', '.join(left_out.by)} given"
            yield SafeText.assemble(indent, ("– ", "dim"), step), SafeText(), SafeText(why, style="dim")
            continue
        if step in told:
            yield SafeText(f"{indent}  {step}", style="dim"), SafeText(), SafeText("see above", style="dim")
            continue
        told.add(step)
        yield _row(machine, step, operations.get(step), indent=indent, run_id=run_id, now=now)
        providers = dict.fromkeys(
            provider
            for fact, need in sorted(plan.steps[step].needs.items())
            if need.role != "const" and not (need.collect == "first" and fact in plan.given)
            for provider in (plan.facts[fact].providers if fact in plan.facts else ())
        )
        stack += [(provider, depth + 1) for provider in reversed(providers)]


def _row(machine: GoalMachine, step: str, operation: Operation | None, *, indent: str, run_id: str, now: int) -> Row:
    if operation is None:
        lacks = _lacks(machine, step)
        what = f"waits for {', '.join(lacks)}" if lacks else "not needed yet"
        return (
            SafeText.assemble(indent, (f"{GLYPH_OF['pending']} ", "dim"), step),
            SafeText(),
            SafeText(what, style="dim"),
        )
    glyph = (f"{GLYPH_OF.get(operation.status, '–')} ", STYLES.get(operation.status, "cyan"))
    kind = ""
    if operation.what not in ("", step):
        kind = f"  {operation.what if operation.kind == 'step' else operation.kind}"
    told = outcome(operation, run_id)
    run = machine.state.steps.get(step)
    if operation.status == "open" and run is not None and run.fan_out:
        told = SafeText(f"{run.items - run.left:,} of {run.items:,} items, {run.active:,} under way", style="cyan")
    return SafeText.assemble(indent, glyph, step, (kind, "dim")), SafeText(took_text(operation, now), style="dim"), told


def _lacks(machine: GoalMachine, step: str) -> list[str]:
    flow = machine.flow
    node = flow.steps.get(step) if flow is not None else None
    return [need.fact.name for need in node.needs if need.undecided] if node is not None else []


def drawn_facts(machine: GoalMachine) -> Table | None:
    """What is known: the first value of each fact, and who gave it."""
    facts = [(name, found[0]) for name, found in sorted(machine.state.facts.items()) if found]
    if not facts:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(no_wrap=True, overflow="ellipsis")
    for name, first in facts[:FACTS_MAX]:
        table.add_row(
            SafeText(f"  {name}"), SafeText(value(bytes(first.value))), SafeText(first.provider or "given", style="dim")
        )
    if len(facts) > FACTS_MAX:
        table.add_row(SafeText(f"  … {len(facts) - FACTS_MAX:,} more", style="dim"), SafeText(), SafeText())
    return table
