"""Hooks: which events of runs are delivered, to which steps, and the runs that deliver them.

A delivery is a run of ``weft.hook``, a graph with one node that performs the step of the hook. Its row is written in
the append of the event, and its id and uid derive from the hook and the event. So it exists once, whatever dies.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from weft.conditions import BadExpression, Condition, EvaluationFailed, compile_condition
from weft.core import commands as c
from weft.core.findings import did_you_mean
from weft.core.ids import HOOK_CHAIN, INTERNAL_WORKFLOWS, HostId, Millis, RunId, RunUid, delivery_uid, tenant_prefix
from weft.core.run.hook_events import HOOK_KINDS, HookEvent, encode_hook_event
from weft.errors import BadHook
from weft.ports.new_run import NewRun

log = logging.getLogger("weft")

WORKFLOW = "weft.hook"
"""The workflow of all deliveries."""
ATTRIBUTE = "weft.hook"
"""The attribute of deliveries: the name of the hook."""
ABOUT = "weft.hook_run"
"""The attribute of deliveries: the id of the run that the event is about."""
FOLDER = "hook/"
KIND, FILTER = "hook.bad_kind", "hook.bad_filter"
_EXAMPLE = """Write where="attributes.region == 'eu'"."""


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook: what it is told of, and the version of the graph that performs its step."""

    name: str
    version: str
    kinds: frozenset[str]
    workflow: str | None = None
    """Only runs of this workflow; None for all."""
    tenant: str | None = None
    """Only runs of this tenant; None for all, and an empty text for runs without a tenant."""
    where: Condition | None = None
    internal: bool = False
    """Whether it is told of Weft's own runs too, such as bulks that are reviewed. Nothing is told of deliveries."""


def read_kinds(kinds: tuple[Any, ...], what: str) -> frozenset[str]:
    """Check the kinds of events that a hook names. Raises BadHook."""
    if not kinds:
        raise BadHook(f"{what} names no kind of event.", hint=f"Name some of {', '.join(HOOK_KINDS)}.", code=KIND)
    for kind in kinds:
        if kind not in HOOK_KINDS:
            near = did_you_mean(str(kind), HOOK_KINDS)
            raise BadHook(
                f"{what} names {str(kind)[:60]!r}, which is no kind of event.",
                hint=near or f"The kinds are {', '.join(HOOK_KINDS)}.",
                code=KIND,
            )
    return frozenset(kinds)


def read_where(where: object, what: str) -> Condition | None:
    """Compile the filter of a hook; None if it has none. Raises BadHook."""
    if where is None:
        return None
    if not isinstance(where, str):
        raise BadHook(f"{what} has a filter that is not a text: {where!r}.", hint=_EXAMPLE, code=FILTER)
    try:
        condition = compile_condition(where)
    except BadExpression as error:
        raise BadHook(f"{what} has a filter that is not valid CEL: {error}", hint=_EXAMPLE, code=FILTER) from error
    fields = HookEvent.__struct_fields__
    for name in sorted(condition.names.difference(fields)):
        raise BadHook(
            f"{what} has a filter that reads {name!r}, which events do not have.",
            hint=did_you_mean(name, fields) or f"An event has {', '.join(fields)}.",
            code=FILTER,
        )
    return condition


class HookTable:
    """The hooks of a host. Hooks that are added later count from then on."""

    def __init__(self) -> None:
        self.hooks: dict[str, Hook] = {}
        self._warned: set[str] = set()

    def matching(self, event: HookEvent) -> Iterator[Hook]:
        """Yield the hooks that want an event."""
        bindings: dict[str, Any] | None = None
        is_internal = event.workflow in INTERNAL_WORKFLOWS
        for hook in self.hooks.values():
            if (
                event.kind not in hook.kinds
                or (is_internal and not hook.internal)
                or hook.workflow not in (None, event.workflow)
                or hook.tenant not in (None, event.tenant)
            ):
                continue
            if hook.where is not None:
                bindings = bindings or msgspec.json.decode(encode_hook_event(event))
                if not self._filter_matches(hook, hook.where, bindings):
                    continue
            yield hook

    def _filter_matches(self, hook: Hook, where: Condition, bindings: dict[str, Any]) -> bool:
        """Evaluate a filter. A filter that reads something missing does not hold, and neither does one that fails."""
        try:
            return where.evaluate(bindings).value
        except EvaluationFailed as error:
            if not _is_path_missing(bindings, error.path) and hook.name not in self._warned:
                self._warned.add(hook.name)
                log.warning("weft: the hook %s is not told of an event of %s: %s", hook.name, bindings["run_id"], error)
            return False


def _is_path_missing(value: Any, path: str) -> bool:
    """Return whether there is no value at a path, such as ``attributes.region``."""
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            return True
        value = value[name]
    return False


def delivery(hook: Hook, event: HookEvent, raw: bytes, host: HostId | None, now: Millis) -> NewRun:
    """Return the run that delivers an event to a hook. ``raw`` is the event as JSON; ``host`` owns the run."""
    run_id = f"{tenant_prefix(event.run_id)}{FOLDER}{hook.name}/{event.uid}/{event.number}"
    attributes: dict[str, Any] = {ATTRIBUTE: hook.name, ABOUT: event.run_id}
    if chain := event.attributes.get(HOOK_CHAIN):
        attributes[HOOK_CHAIN] = chain
    start = c.StartRun(
        run_id=run_id, workflow=WORKFLOW, version=hook.version, style="graph", input=Raw(raw), attributes=attributes
    )
    return NewRun(
        uid=RunUid(delivery_uid(event.uid, event.number, hook.name)),
        id=RunId(run_id),
        workflow=WORKFLOW,
        version=hook.version,
        style="graph",
        created_at=now,
        attributes=attributes,
        start=c.encode(start),
        owner=host,
    )
