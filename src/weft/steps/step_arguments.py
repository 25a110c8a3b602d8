"""Find the arguments that a node of a graph gives to a step and that it does not take, and those that it needs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import msgspec

from weft.core.findings import Finding
from weft.core.graph.model import Node, StepWork
from weft.steps.definition import DEFINED


class StepArguments(msgspec.Struct, frozen=True):
    """The names of the arguments that a step takes, and of those that it needs."""

    takes: Sequence[str]
    needs: Sequence[str]


def given_arguments(node: Node) -> dict[str, object] | None:
    """Return what a node gives to its step by name; None if that is not known before it runs."""
    work = node.work
    if not isinstance(work, StepWork) or node.queue or work.config_ref or work.step == DEFINED or node.input is None:
        return None
    return node.input.source if isinstance(node.input.source, dict) else None


def wrong_arguments(node: Node, step: str, given: Mapping[str, object], arguments: StepArguments) -> list[Finding]:
    """Return a finding for every argument that the step does not take, and one for those that are missing."""
    takes = arguments.takes
    if list(takes) == ["input"] and "input" not in given:
        return []
    at = f"nodes.{node.id}.with"
    findings = []
    for key in given:
        if key not in takes:
            close = difflib.get_close_matches(key, takes, n=1)
            listed = f"Its parameters are {', '.join(takes)}." if takes else f"{step} has no parameters."
            hint = f'Did you mean "{close[0]}"?' if close else listed
            message = f"{step} has no parameter {key}."
            findings.append(Finding("graph.unknown_argument", message, f"{at}.{key}", suggestion=hint))
    missing = [name for name in arguments.needs if name not in given]
    if missing:
        findings.append(Finding("graph.missing_argument", f"{step} needs {', '.join(missing)}.", at))
    return findings
