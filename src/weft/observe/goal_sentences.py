"""Describe the steps of a goal run in sentences."""

from __future__ import annotations

from weft.observe.diagnosis import ExcludedStep, PendingNeed, StepStanding

PROVIDERS = {"active": "runs", "pending": "has not started"}


def step_sentences(step: StepStanding) -> list[str]:
    """Describe the state of a step. A pending step has a sentence for each need that keeps it from starting."""
    match step.status:
        case "completed":
            gave = f": gave {', '.join(step.gave)}" if step.gave else ""
            return [f"{step.step} completed{gave}{f', not {chr(44).join(step.lacks)}' if step.lacks else ''}"]
        case "active":
            health = f" (unhealthy: {step.unhealthy})" if step.unhealthy else ""
            return [f"{step.step} runs{_items(step)}{health}"]
        case "failed":
            return [f"{step.step} failed: {step.why}"]
        case "skipped":
            return [f"{step.step} was skipped: {step.why}"]
    if step.needs:
        return [_need(step.step, need) for need in step.needs]
    if step.needed_now:
        return [f"{step.step} waits for nothing and is about to start"]
    return [f"{step.step} is not needed yet"]


def _items(step: StepStanding) -> str:
    if not step.fan_out:
        return ""
    return f": {step.items_over:,} of {step.items:,} items are done, {step.items_active:,} are running"


def _need(step: str, need: PendingNeed) -> str:
    kind = "" if need.role == "required" else "the optional "
    if need.match:
        kind = f"a value that matches {need.match} of "
    providers = ", ".join(f"{name} ({PROVIDERS[status]})" for name, status in need.providers.items())
    return f"{step} waits for {kind}{need.fact}{f' from {providers}' if providers else ''}"


def excluded_sentence(excluded: ExcludedStep) -> str:
    """Explain why a step is not in the plan."""
    by = ", ".join(excluded.by)
    reason = f"no step provides {by}" if excluded.why == "missing" else f"{by} is given"
    return f"{excluded.step} is not in the plan: {reason}"
