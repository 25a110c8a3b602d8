"""Turn orders into starts. An order names a workflow or goals, and a start is what a run records.

A catalogue resolves the name to a version, a style, a timeout and the program that checks the input. Without a
catalogue, the start keeps the name, and the host that claims the run completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.budgets import BudgetLimits
from weft.core.code.locations import check_name
from weft.core.events import ABSENT
from weft.core.findings import did_you_mean
from weft.core.ids import GOAL, INTERNAL_WORKFLOWS, reserved_prefix
from weft.core.run_rules import RunRules
from weft.errors import BadValue, UnknownWorkflow, UsageError
from weft.ports.clock import Ids
from weft.ports.definitions import Definition, Definitions
from weft.runtime.catalogue import Callee, HostCatalogue
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.programs import AnyProgram, graph_program, start_plan
from weft.runtime.schedule_form import PRIORITY_MAX
from weft.runtime.start_rules import DeclaredRule
from weft.runtime.tags import WorkflowTags
from weft.runtime.typed_words import read_words
from weft.runtime.version_refs import parse_version_ref

GOALS = Callee("1", "goal")
"""Goals have one version, because each run has its own plan."""


class StartOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A request to start a workflow by its name, or goals."""

    workflow: str = GOAL
    input: Mapping[str, Any] | bytes = {}
    """Bytes are JSON that the workflow has checked already, such as the arguments of a call."""
    goals: Sequence[str] = ()
    """Steps whose results are wanted, instead of a workflow."""
    version: str | None = None
    """A version; None for the newest registered version, or for the one that ``workflow`` names (``order:live``)."""
    tag: str = ""
    """The tag that named the version."""
    id: str | None = None
    existing: str = "attach"
    attributes: Mapping[str, Any] = {}
    queue: str | None = None
    delay_ms: int = 0
    priority: int = 0
    burst_ms: int = 0
    """How long the run is delayed because many starts are in progress, unless it has a delay or a rule of its own."""
    trace: str = ""
    """The W3C traceparent of the caller."""
    budget: BudgetLimits | None = None
    """The budget of the run, instead of the one that its workflow declares."""
    rules: RunRules | None = None
    """Rules for this run alone."""
    words: Sequence[str] = ()
    """The names of arguments that were typed as text and are not converted yet."""


async def pin_version(order: StartOrder, tags: WorkflowTags) -> StartOrder:
    """Replace a name such as ``order:live`` by the workflow and the version. Raises BadValue, NotFound, UsageError."""
    if order.version is not None:
        raise UsageError(f"{order.workflow} names a version, and version={order.version!r} another.")
    ref = parse_version_ref(order.workflow)
    version = ref.version or await tags.version(ref)
    return msgspec.structs.replace(order, workflow=ref.workflow, version=version, tag=ref.label)


async def start_of(
    order: StartOrder, catalogue: HostCatalogue | None, definitions: Definitions, ids: Ids
) -> tuple[c.StartRun, DeclaredRule | None]:
    """Turn an order into a start, with its input checked if there is a catalogue, and with the workflow's rule.

    Raises UnknownWorkflow, BadValue, BadGraph, BadPlan, UnknownStep, UsageError.
    """
    if order.workflow in INTERNAL_WORKFLOWS:
        raise unknown_workflow(order.workflow, catalogue.startable() if catalogue is not None else ())
    if catalogue is None:
        return _start_command(order, ids, await _stored_callee(order, definitions), unchecked_input(order)), None
    callee = GOALS if order.goals else await _find_callee(order, catalogue, definitions)
    program = catalogue.program(order.workflow, callee.version)
    assert program is not None, "a catalogue has the programs that it resolves"
    if order.words:
        named = read_words(unchecked_input(order), order.words, program.read)
        order = msgspec.structs.replace(order, input=msgspec.json.decode(named), words=())
    given = program.check(order.input)
    if order.rules is not None:
        check_rules(order, program)
    return _start_command(order, ids, callee, given, start_plan(program, given, order.goals)), callee.rule


def check_rules(order: StartOrder, program: AnyProgram) -> None:
    """Raise BadValue if rules name nodes that the graph does not have, or are for graphs and this is none."""
    rules = order.rules
    if rules is None or not rules.is_for_graphs:
        return
    graph = graph_program(program)
    if graph is None:
        raise BadValue(
            f"{order.workflow} is no graph, so that it has neither transitions nor hops to limit.",
            hint="Give only deadline_at. Nothing was started.",
            code="value.bad_policy",
        )
    nodes = graph.graph.nodes
    for name in [*rules.transitions, *(target for targets in rules.transitions.values() for target in targets)]:
        if name not in nodes:
            near = did_you_mean(name, list(nodes))
            message = f'allowed_transitions names "{name[:60]}", and {order.workflow} has no such node.'
            raise BadValue(message, hint=f"{near} Nothing was started.".strip(), code="value.bad_policy")


async def _find_callee(order: StartOrder, catalogue: HostCatalogue, definitions: Definitions) -> Callee:
    """Return the program that the order names: one that is registered here, or an earlier graph in the store."""
    known = catalogue.resolve(order.workflow, order.version or "")
    if known is not None:
        return known
    if order.version is None:
        raise unknown_workflow(order.workflow, catalogue.startable())
    stored = await stored_workflow(definitions, order.workflow, order.version)
    if stored is None:
        raise UnknownWorkflow(f'There is no version "{order.version[:60]}" of "{order.workflow}".')
    catalogue.learn(stored)
    return catalogue.resolve(stored.name, stored.version) or Callee(stored.version, "graph")


async def _stored_callee(order: StartOrder, definitions: Definitions) -> Callee | None:
    """Return the stored program that the order names; None if the host that claims the run must resolve it."""
    if order.goals:
        return GOALS
    stored = await stored_workflow(definitions, order.workflow, order.version) if order.version is not None else None
    return Callee(stored.version, "graph") if stored is not None else None


def unchecked_input(order: StartOrder) -> bytes:
    """Return the input of an order as JSON, which another host will check. Raises BadValue."""
    if isinstance(order.input, bytes):
        return order.input
    return values.encode(dict(order.input), what="the goals got" if order.goals else f"{order.workflow} got")


def _start_command(order: StartOrder, ids: Ids, callee: Callee | None, given: bytes, plan: Raw = ABSENT) -> c.StartRun:
    planned = bool(bytes(plan))
    make: Callable[..., c.StartRun] = c.StartRun
    if planned or order.goals:
        make = partial(c.StartGoal, plan=plan, goals=[] if planned else list(order.goals))
    return make(
        run_id=check_own_id(order.id) if order.id is not None else f"{order.workflow}-{ids.new()}",
        workflow=order.workflow,
        version=callee.version if callee is not None else order.version or "",
        style=callee.style if callee is not None else "",
        input=Raw(given),
        timeout_ms=callee.timeout_ms if callee is not None else 0,
        attributes=attributes_as_json(order.attributes) if order.attributes else {},
        queue=check_name(order.queue) if order.queue is not None else "",
        words=list(order.words),
        trace=order.trace,
        tag=order.tag,
        priority=check_priority(order.priority),
        budget=order.budget,
        rules=order.rules,
    )


async def stored_workflow(definitions: Definitions, name: str, version: str) -> Definition | None:
    """Return one version of a graph in the store."""
    return await definitions.get(name, version) if name != CATALOGUE else None


def unknown_workflow(name: str, known: Sequence[str]) -> UnknownWorkflow:
    """Make the error for a name that no registered workflow has."""
    names = ", ".join(known[:20]) or "none"
    near = did_you_mean(name, known)
    return UnknownWorkflow(
        f'No workflow "{name[:60]}" is registered.{f" {near}" if near else ""}',
        hint=f"Registered: {names}. Import the file that defines it.",
    )


def check_run_id(run_id: str) -> str:
    """Check the id of a run and return it. Raises UsageError if it is unsuitable for command lines and URLs."""
    # Browsers and proxies remove "." and ".." from addresses.
    is_dots = run_id in {".", ".."}
    if not run_id or is_dots or len(run_id) > 500 or not run_id.isprintable() or run_id != run_id.strip():
        raise UsageError(
            f"{run_id[:60]!r} cannot be used as the id of a run.",
            hint='Use 1 to 500 printable characters, without spaces at the ends, other than "." and "..".',
        )
    return run_id


def check_own_id(run_id: str) -> str:
    """Check an id that a user chose for a new run and return it. Raises UsageError."""
    reserved = reserved_prefix(run_id)
    if reserved:
        raise UsageError(
            f"{run_id[:60]!r} cannot be used as the id of a run: ids that begin with {reserved!r} are Weft's own.",
            hint="Choose an id that begins with something else.",
        )
    return check_run_id(run_id)


def check_priority(priority: int) -> int:
    """Check a priority and return it. Raises BadValue."""
    anything: object = priority  # type hints are not checked at run time
    if not isinstance(anything, int) or isinstance(anything, bool) or abs(anything) > PRIORITY_MAX:
        raise BadValue(
            f"priority={values.preview_text(anything)} is not a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}.",
            hint="Write priority=10 for a run that comes before others, and -10 for one that can wait.",
            code="value.bad_policy",
        )
    return priority


def attributes_as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes after a round trip through JSON. Raises BadValue."""
    decoded: dict[str, Any] = values.decode(values.encode(dict(attributes), what="the attributes have"))
    return decoded
