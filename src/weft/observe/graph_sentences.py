"""Describe the path, the joins and the skipped nodes of a graph run in sentences."""

from __future__ import annotations

from weft.core.plurals import pluralize
from weft.core.values import preview_text
from weft.observe.diagnosis import JoinStanding, NodeSkip, PathStep, SeenCondition, TakenEdge

BRANCHES_SHOWN_MAX = 3
BECAME = {"": ": a dead letter", "retried": ", later retried", "discarded": ", later discarded"}


def path_sentence(step: PathStep) -> str:
    """Describe one step of the path."""
    failure = step.failure
    match step.kind:
        case "routed":
            return _routed(step)
        case "failed":
            return f"{step.node} failed: {failure.message if failure is not None else ''}"
        case "dead_letter":
            why = f"{failure.type}: {failure.message}" if failure is not None else ""
            return f"no edge of {step.node} handled its failure ({why}){BECAME[step.became]}"
        case "retried":
            return "the run was retried"


def _routed(step: PathStep) -> str:
    source = step.node or "the start"
    if not step.edges:
        return f"{source} ended here"
    return f"{source}{' failed' if step.caught else ''} → {', '.join(map(_edge, step.edges))}"


def _edge(edge: TakenEdge) -> str:
    branches = f" ({pluralize(edge.branches, 'branch')})" if edge.branches is not None else ""
    why = _reason(edge.condition, edge.catches)
    return f"{edge.to}{branches}{' again' if edge.is_back else ''}{f' because {why}' if why else ''}"


def _reason(condition: SeenCondition | None, catches: list[str] | None) -> str:
    if condition is not None:
        seen = ", ".join(f"{name} = {preview_text(value)}" for name, value in condition.seen.items())
        return f"{condition.source}{f' ({seen})' if seen else ''}"
    if catches is not None:
        return f"it catches {', '.join(catches) or 'any error'}"
    return ""


def skip_sentence(skip: NodeSkip, *, is_over: bool) -> str:
    """Explain why a node did not run."""
    run = "did not run" if is_over else "has not run"
    match skip.why:
        case "condition":
            why = f"at {skip.at}, {_reason(skip.condition, skip.catches)} did not hold"
        case "another_edge":
            why = f"{skip.at} took another edge first"
        case "no_failure":
            why = f"{skip.at} did not fail"
        case "sources":
            why = f"{' and '.join(skip.sources)} {run}"
        case _:
            why = "nothing led to it"
    return f"{skip.node} {run}: {why}"


def join_sentence(join: JoinStanding, *, is_over: bool) -> str:
    """Describe what a join still waits for, or what it did not get."""
    if join.sources:
        return f"{join.node} {'had nothing from' if is_over else 'waits for'} {', '.join(join.sources)}"
    branches = f"{join.arrived} of {join.total} branches"
    if not is_over:
        return f"{join.node} has {branches} and needs {join.need}; not arrived yet: {_branches(join, 'open')}"
    kinds = [("failed", "failed"), ("stopped", "stopped when the run ended")]
    missing = "".join(f"; {kind}: {_branches(join, status)}" for status, kind in kinds if status in join.missing_counts)
    return f"{join.node} had {branches} and needed {join.need}{missing}"


def _branches(join: JoinStanding, status: str) -> str:
    """Name the first branches with a status, each with its current or last node."""
    first = [branch for branch in join.missing if branch.status == status][:BRANCHES_SHOWN_MAX]
    names = ", ".join(f"branch {branch.index}{f' at {branch.place}' if branch.place else ''}" for branch in first)
    more = join.missing_counts.get(status, 0) - len(first)
    return f"{names}{f' and {more} more' if more else ''}"
