"""Add the deliveries of an event to the append that records it."""

from __future__ import annotations

from typing import Protocol

from weft.core import events as e
from weft.core.ids import HostId, Millis
from weft.core.machine import Machine
from weft.core.run.hook_events import fit_event, hook_event
from weft.ports.new_run import NewRun
from weft.runtime.hooks import WORKFLOW, HookTable, delivery
from weft.runtime.run.draft import Draft
from weft.runtime.run.ports import RunPorts


class ObservedRun(Protocol):
    """A run whose events hooks may be told of."""

    machine: Machine
    now_ms: Millis
    ports: RunPorts


def add_deliveries(run: ObservedRun, draft: Draft, event: e.AnyEvent) -> None:
    """Start a delivery for every hook that wants the event that was just applied."""
    ports = run.ports
    draft.children += deliveries_of(run.machine, event, ports.hooks, ports.host, run.now_ms)


def deliveries_of(
    machine: Machine, event: e.AnyEvent, hooks: HookTable, host: HostId | None, now: Millis
) -> tuple[NewRun, ...]:
    """Return the runs that deliver the event that was just applied, owned by ``host``.

    Deliveries have none themselves, and neither have forks that must have no effects.
    """
    state = machine.state
    if state.workflow == WORKFLOW or (state.fork is not None and state.fork.effects == "none"):
        return ()
    told = hook_event(machine, event)
    wanted = list(hooks.matching(told)) if told is not None else []
    if not wanted or told is None:
        return ()
    raw = fit_event(told)
    return tuple(delivery(hook, told, raw, host, now) for hook in wanted)
