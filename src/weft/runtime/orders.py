"""Starts by name: an order names a workflow or goals, and becomes the start that a run records.

A catalogue knows what the name means: its version, style and timeout, and the program that checks the input. Without
one, the start keeps the name, and the host that takes the run up completes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.events import ABSENT
from weft.core.findings import did_you_mean
from weft.core.ids import GOAL
from weft.errors import UnknownWorkflow, UsageError
from weft.ports.clock import Ids
from weft.ports.store import Definition, Definitions
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.programs import start_plan

GOALS = Callee("1", "goal")
"""Goals have one version: a run holds its plan."""


class StartOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started: a workflow by its name, or goals."""

    workflow: str = GOAL
    input: Mapping[str, Any] | bytes = {}
    """Bytes are JSON that the workflow has checked already, such as the arguments of a call."""
    goals: Sequence[str] = ()
    """Steps whose results are wanted, instead of a workflow."""
    version: str | None = None
    """A version, or the tag of a graph; None: the newest registered version."""
    id: str | None = None
    existing: str = "attach"
    attributes: Mapping[str, Any] = {}
    queue: str | None = None
    delay_ms: int = 0
    words: Sequence[str] = ()
    """The arguments that were typed as text and are still to be read by their types."""


async def start_of(
    order: StartOrder, catalogue: HostCatalogue | None, definitions: Definitions, ids: Ids
) -> c.StartRun:
    """Turn an order into a start, with its input checked if there is a catalogue.

    Raises UnknownWorkflow, BadValue, BadGraph, BadPlan, UnknownStep, UsageError.
    """
    if catalogue is None:
        return _start(order, ids, await _stored_callee(order, definitions), unchecked_input(order))
    callee = GOALS if order.goals else await _callee(order, catalogue, definitions)
    program = catalogue.program(order.workflow, callee.version)
    assert program is not None, "what a catalogue resolves, it can run"
    given = program.check(order.input)
    return _start(order, ids, callee, given, start_plan(program, given, order.goals))


async def _callee(order: StartOrder, catalogue: HostCatalogue, definitions: Definitions) -> Callee:
    """Return what the order names: what is registered here, or a graph of the store in an earlier version."""
    known = catalogue.resolve(order.workflow, order.version or "")
    if known is not None:
        return known
    if order.version is None:
        raise unknown_workflow(order.workflow, catalogue.startable())
    stored = await stored_workflow(definitions, order.workflow, order.version)
    if stored is None:
        raise UnknownWorkflow(f'No version "{order.version}" of "{order.workflow}" is known here.')
    catalogue.learn(stored)
    return catalogue.resolve(stored.name, stored.version) or Callee(stored.version, "graph")


async def _stored_callee(order: StartOrder, definitions: Definitions) -> Callee | None:
    """Return what the store knows of the name; None leaves it to the host that takes the run up."""
    if order.goals:
        return GOALS
    stored = await stored_workflow(definitions, order.workflow, order.version) if order.version is not None else None
    return Callee(stored.version, "graph") if stored is not None else None


def unchecked_input(order: StartOrder) -> bytes:
    """Return the input of an order as JSON, for a host elsewhere to check. Raises BadValue."""
    if isinstance(order.input, bytes):
        return order.input
    return values.encode(dict(order.input), what="the goals got" if order.goals else f"{order.workflow} got")


def _start(order: StartOrder, ids: Ids, callee: Callee | None, given: bytes, plan: Raw = ABSENT) -> c.StartRun:
    start = c.StartRun(
        run_id=check_run_id(order.id) if order.id is not None else f"{order.workflow}-{ids.new()}",
        workflow=order.workflow,
        version=callee.version if callee is not None else order.version or "",
        style=callee.style if callee is not None else "",
        input=Raw(given),
        timeout_ms=callee.timeout_ms if callee is not None else 0,
        attributes=plain_attributes(order.attributes),
        queue=check_name(order.queue) if order.queue is not None else "",
        words=list(order.words),
    )
    planned = bool(bytes(plan))
    if not planned and not order.goals:
        return start
    return c.StartGoal(**msgspec.structs.asdict(start), plan=plan, goals=[] if planned else list(order.goals))


async def stored_workflow(definitions: Definitions, name: str, version: str) -> Definition | None:
    """Return one version of a graph that the store keeps, by its name or a tag."""
    return await definitions.get(name, version) if name != CATALOGUE else None


def unknown_workflow(name: str, known: Sequence[str]) -> UnknownWorkflow:
    """Make the error for a name that no registered workflow has."""
    listed = ", ".join(known[:20]) or "none"
    near = did_you_mean(name, known)
    return UnknownWorkflow(
        f'No workflow "{name}" is registered.{f" {near}" if near else ""}',
        hint=f"Known: {listed}. (The file that defines it must be imported.)",
    )


def check_run_id(run_id: str) -> str:
    """Return the id of a run. Raises UsageError for one that does not fit on a command line or in a URL."""
    if not run_id or len(run_id) > 500 or not run_id.isprintable() or run_id != run_id.strip():
        raise UsageError(
            f"{run_id[:60]!r} cannot be the id of a run.", hint="1 to 500 printable characters, no blanks at the ends."
        )
    return run_id


def plain_attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return attributes as JSON has them. Raises BadValue."""
    if not attributes:
        return {}
    found: dict[str, Any] = values.decode(values.encode(dict(attributes), what="the attributes have"))
    return found
