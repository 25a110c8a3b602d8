"""Print what a run and everything below it have spent."""

from __future__ import annotations

from rich.console import Console

from weft.cli.output import SafeText
from weft.observe.usage import RunUsage, has_other_spenders


def draw_usage(out: Console, usage: RunUsage) -> None:
    """Print what was spent, what is left of each budget, and who spent most."""
    if not usage.units and not usage.budgets:
        out.print(SafeText(f"{usage.run} has spent nothing, and has no budget."))
        return
    out.print(SafeText(f"{usage.run} and everything below it:" if usage.units else f"{usage.run} has spent nothing."))
    for unit in usage.units:
        out.print(SafeText(f"  {unit.text}"))
    for budget in usage.budgets:
        if budget.run != usage.run:
            out.print(SafeText(f"the budget of {budget.run}, from which it spends too:"))
            for unit in budget.units:
                out.print(SafeText(f"  {unit.text}"))
    if has_other_spenders(usage):
        out.print(SafeText("most was spent by"))
        for spender in usage.spenders:
            spent = ", ".join(unit.text for unit in spender.units)
            out.print(SafeText(f"  {spender.run} ({spender.workflow}): {spent}"))
    if usage.has_budget:
        out.print(SafeText(f"to raise it: weft budget {usage.run} --add UNIT=AMOUNT", style="dim"))
