"""How the steps of a run stand when it is patched: which have begun, which may be planned, and what they have read."""

from __future__ import annotations

from collections.abc import Mapping

from weft.core.goal.definitions import StepDef
from weft.core.goal.need_counts import NeedCounts
from weft.core.goal.settle import NOT_MATCHED, NOT_NEEDED
from weft.core.goal.state import GoalState, StepRun
from weft.core.goal.turn import PREDICATE_FALSE

WITHOUT_ITEM = frozenset({"predicate", "too_many_items", "bad_input"})
"""The failures of a step that has bound its inputs, but has no work item."""


def has_begun(run: StepRun) -> bool:
    """Return whether the inputs of a step were bound, even if its predicate was false or could not be evaluated."""
    if run.status in ("active", "completed") or run.items or bytes(run.inputs) != b"null":
        return True
    return is_predicate_false(run) or failed_without_item(run)


def is_predicate_false(run: StepRun) -> bool:
    """Return whether the predicate of a step was false."""
    return run.status == "skipped" and run.why == PREDICATE_FALSE


def failed_without_item(run: StepRun) -> bool:
    """Return whether a step failed after its inputs were bound, before it had a work item."""
    return run.status == "failed" and not run.items and run.failure is not None and run.failure.code in WITHOUT_ITEM


def may_be_planned_again(run: StepRun, *, failed: bool) -> bool:
    """Return whether a step may be planned again. ``failed`` says whether the run has failed."""
    if run.status == "pending" or run.replaced is not None:
        return True
    if failed:
        return not has_begun(run) or failed_without_item(run)
    return run.status == "skipped" and run.why == NOT_NEEDED and not has_begun(run)


def may_replace(run: StepRun, *, failed: bool) -> bool:
    """Return whether a patch may give a step another definition."""
    return may_be_planned_again(run, failed=failed) or (failed and run.status != "completed")


def can_still_give(run: StepRun, *, failed: bool) -> bool:
    """Return whether a step that has begun can still give what it declares, perhaps only after a retry."""
    if run.status == "active":
        return True
    return failed and run.status != "completed" and not is_predicate_false(run)


def gives_of(definition: StepDef, run: StepRun, *, failed: bool) -> list[str]:
    """Return the facts that a step which may not be planned again has given or can still give."""
    if run.status == "completed":
        return run.gave
    return list(definition.gives) if can_still_give(run, failed=failed) else []


def facts_read(state: GoalState, steps: Mapping[str, StepDef], flow: NeedCounts) -> set[str]:
    """Return the facts with a value that was bound, or was judged by a gate that closed or a deadline that passed."""
    found = set(state.read)
    for step, definition in steps.items():
        run = state.steps[step]
        found.update(fact for fact, values in run.decided.items() if values)
        if has_begun(run):
            bound = run.replaced or definition
            found.update(fact for fact in bound.needs if _has_bound(state, step, bound, fact))
        elif run.status == "skipped" and run.why == NOT_MATCHED:
            found.update(need.fact.name for need in flow.steps[step].needs if need.gate and need.state == "closed")
    return found


def _has_bound(state: GoalState, step: str, definition: StepDef, fact: str) -> bool:
    need = definition.needs[fact]
    if need.role == "const" or need.collect == "none" or fact not in state.facts:
        return False
    return step not in state.unread.get(fact, ()) and state.steps[step].decided.get(fact) != 0
