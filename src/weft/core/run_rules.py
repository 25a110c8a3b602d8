"""Rules for one run, given with its start: where its tokens may go, how many hops it has, and until when. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from weft.core.durations import time_of
from weft.core.findings import did_you_mean
from weft.errors import BadValue

FIELDS = ("allowed_transitions", "max_hops", "deadline_at")
HOPS_MAX = 100_000
NODES_MAX = 10_000


class RunRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rules for one run. They are recorded with its start, and nothing changes them."""

    transitions: dict[str, list[str]] = {}
    """The nodes to which a node may lead. A node without an entry may lead wherever its graph says."""
    hops: int = 0
    """How many hops the run may have; 0 for as many as its graph says."""
    deadline: int = 0
    """When the run is over at the latest, in milliseconds; 0 for no such time."""

    @property
    def is_for_graphs(self) -> bool:
        """Whether only a graph can obey them."""
        return bool(self.transitions or self.hops)

    def denied(self, source: str, targets: list[str]) -> str:
        """Return the first node to which this node may not lead; empty if it may lead to all of them."""
        allowed = self.transitions.get(source)
        return "" if allowed is None else next((target for target in targets if target not in allowed), "")


def read_run_rules(given: Mapping[str, Any]) -> RunRules:
    """Read the rules of a run as people write them. Raises BadValue."""
    for name in given:
        if name not in FIELDS:
            near = did_you_mean(name, FIELDS)
            raise _bad_run_policies(f"{name[:60]!r} is not a field", near or f"The fields are {', '.join(FIELDS)}.")
    hops = given.get("max_hops", 0)
    is_count = isinstance(hops, int) and not isinstance(hops, bool) and 1 <= hops <= HOPS_MAX
    if "max_hops" in given and not is_count:
        raise _bad_run_policies("max_hops is not a whole number", f"Write a number from 1 to {HOPS_MAX:,}.")
    deadline = _read_deadline(given["deadline_at"]) if "deadline_at" in given else 0
    return RunRules(transitions=_read_transitions(given.get("allowed_transitions", {})), hops=hops, deadline=deadline)


def run_rules_document(rules: RunRules) -> dict[str, Any]:
    """Return rules as people write them."""
    found: dict[str, Any] = {"allowed_transitions": rules.transitions, "max_hops": rules.hops}
    if rules.deadline:
        found["deadline_at"] = time_of(rules.deadline).isoformat()
    return {name: value for name, value in found.items() if value}


def _read_transitions(given: Any) -> dict[str, list[str]]:
    hint = 'Write {"judge": ["sales", "nurture"]}: to which nodes each node may lead.'
    if not isinstance(given, Mapping) or len(given) > NODES_MAX:
        raise _bad_run_policies("allowed_transitions is not a mapping of nodes to nodes", hint)
    for source, targets in given.items():
        is_list = isinstance(targets, list | tuple) and len(targets) <= NODES_MAX
        if not isinstance(source, str) or not is_list or not all(isinstance(target, str) for target in targets):
            raise _bad_run_policies(f"allowed_transitions of {str(source)[:60]!r} is not a list of nodes", hint)
    return {source: list(targets) for source, targets in given.items()}


def _read_deadline(given: Any) -> int:
    try:
        when = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        when = None
    if not isinstance(when, datetime) or when.tzinfo is None:
        raise _bad_run_policies("deadline_at is not a time with its offset", 'Write "2026-01-31T17:00:00+00:00".')
    return int(when.timestamp() * 1000)


def _bad_run_policies(why: str, hint: str) -> BadValue:
    message = f"The run_policies are not valid: {why}."
    return BadValue(message, hint=f"{hint} Nothing was started.", code="value.bad_policy")
