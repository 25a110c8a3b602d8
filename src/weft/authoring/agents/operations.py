"""Recorded operations that the loop uses: tasks by name, recorded values, and questions with a schema."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.agents.models.chunks import turn_of
from weft.authoring.inline_steps import perform_inline
from weft.authoring.policies import policy_of
from weft.authoring.results import Answer
from weft.authoring.runnable import Invocation
from weft.authoring.workflows import child_failed, start_child
from weft.core import commands as c
from weft.core import values
from weft.core.budgets import Cover
from weft.core.code.locations import check_name, location_key
from weft.core.code.state import Entry
from weft.core.durations import time_of
from weft.core.events import Policy, UndoPlan
from weft.runtime.run.driver import CodeScope, current_scope
from weft.steps.codec import Codec
from weft.steps.failures import rebuild_error
from weft.steps.task import chunk_of


class StoredResult(msgspec.Struct, frozen=True):
    """The JSON of a result, and the digest of its blob if it is one."""

    raw: bytes
    digest: str = ""


class TaskOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A task: the step that performs it, its input, and its policy."""

    place: str
    """The name under which it is recorded."""
    step: str
    given: bytes
    policy: Policy
    cover: Cover
    """What it may cost at most."""
    undo: UndoPlan | None = None


class QuestionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A question: what people see, who is asked, and for how long."""

    place: str
    title: str
    about: Any = None
    form: dict[str, Any] | None = None
    of: tuple[str, ...] = ()
    timeout_ms: int = 0
    on_timeout: Literal["fail", "reject"] = "reject"


class _RecordedDecision(msgspec.Struct):
    approved: bool
    by: list[str]
    reason: str
    form: Raw
    at: int


COVER = "cover"
"""The place at which the budget of a call is reserved that is no task of its own."""
_COVER_POLICY = policy_of(effect="pure")
_NOTHING: Codec[None] = Codec.of(type(None))

_read_decision = msgspec.json.Decoder(_RecordedDecision).decode


def loop_scope() -> CodeScope:
    """Return the current place in the loop."""
    scope = current_scope()
    assert scope is not None, "an agent runs as a workflow"
    return scope


def is_recorded(name: str) -> bool:
    """Return whether the next use of a name at this place is recorded already."""
    return _next_entry(name) is not None


def is_next_settled(name: str) -> bool:
    """Return whether the next use of a name at this place is recorded already, with its outcome."""
    entry = _next_entry(name)
    return entry is not None and entry.status != "open"


def _next_entry(name: str) -> Entry | None:
    scope = loop_scope()
    return scope.driver.machine.lookup(location_key(scope.prefix, name, scope.counts.get(name, 0) + 1))


async def perform_task(order: TaskOrder) -> StoredResult:
    """Perform a task, or return its recorded result. Raises the failure of the task."""
    scope = loop_scope()
    driver = scope.driver
    digest = values.digest(order.given)
    n, entry = driver.find(scope, check_name(order.place), "step", digest, order.given)
    if entry is None:
        entry = driver.schedule(
            c.ScheduleTask(
                scope.prefix,
                order.place,
                n,
                order.step,
                driver.outside.keep(order.given),
                digest,
                order.policy,
                order.undo,
                passed=driver.passed(scope, order.policy),
                cover=order.cover,
            )
        )
    return await _result_of(scope, entry)


async def _result_of(scope: CodeScope, entry: Entry) -> StoredResult:
    driver = scope.driver
    await driver.outcome(entry)
    if entry.failure is not None:
        raise rebuild_error(entry.failure, run_id=driver.machine.state.run_id)
    return await _stored(scope, entry.output)


async def cover_call(cover: Cover) -> None:
    """Reserve and spend what a call costs that is no task of its own. Raises BudgetExceeded: it must not be made."""
    scope = loop_scope()

    async def nothing() -> None:
        pass

    def ask(n: int) -> c.ScheduleTask:
        passed = scope.driver.passed(scope, _COVER_POLICY)
        return c.ScheduleTask(
            scope.prefix, COVER, n, COVER, Raw(b"{}"), "", _COVER_POLICY, inline=True, passed=passed, cover=cover
        )

    await perform_inline(scope, COVER, nothing, _NOTHING, ask)


async def child_output(invocation: Invocation) -> StoredResult:
    """Run a child run at this place, and return its result as JSON. Raises RunFailed, RunCancelled, LimitExceeded."""
    scope = loop_scope()
    entry = start_child(scope, invocation)
    await scope.driver.outcome(entry)
    if entry.failure is not None:
        raise child_failed(entry)
    return await _stored(scope, entry.output)


async def _stored(scope: CodeScope, output: Raw) -> StoredResult:
    sealed = bytes(output)
    digest = values.parse_ref(sealed).digest if values.is_ref(sealed) else ""
    return StoredResult(await scope.driver.value(output), digest)


async def recorded_value(name: str, of: Literal["spec", "policy", "result"], raw: bytes | None) -> StoredResult:
    """Return the value recorded at this place, or record this one. ``spec`` and ``result`` are kept as blobs."""
    scope = loop_scope()
    driver = scope.driver
    n, entry = driver.find(scope, check_name(name), of)
    await driver.at_once(new=entry is None)
    if entry is None:
        assert raw is not None, "a new value is given"
        kept = driver.outside.keep(raw, apart=of != "policy")
        entry = driver.ask(c.RecordValue(scope.prefix, name, n, of, kept))
    return await _stored(scope, entry.output)


async def emit_chunk(stream: str, chunk: dict[str, Any]) -> None:
    """Write to an output stream of the run at the root of the tree."""
    scope = loop_scope()
    name = f"!{stream}"
    place = scope.prefix.rstrip("/")
    about = {"run": scope.driver.machine.state.run_id, "place": place, "turn": turn_of(place)}
    raw = chunk_of(stream, {**about, **chunk})
    n, _ = scope.driver.find(scope, name, "emit")
    await scope.driver.at_once(new=False)
    scope.driver.outside.emit(stream, raw, location_key(scope.prefix, name, n), at_root=True)


async def ask_people(order: QuestionOrder) -> Answer[Any]:
    """Ask people, and wait for their decision. ``form`` of the answer is decoded JSON."""
    scope = loop_scope()
    driver = scope.driver
    n, entry = driver.find(scope, check_name(order.place), "ask")
    if entry is None:
        about = driver.outside.keep(values.encode(order.about, what="the question is about"))
        due = driver.outside.now() + order.timeout_ms if order.timeout_ms else 0
        entry = driver.ask(
            c.OpenAsk(
                scope.prefix,
                order.place,
                n,
                order.title,
                order.form,
                about,
                list(order.of),
                "any",
                due,
                order.on_timeout,
            )
        )
    await driver.outcome(entry)
    if entry.failure is not None:
        raise rebuild_error(entry.failure, run_id=driver.machine.state.run_id)
    decided = _read_decision(await driver.value(entry.output))
    form = None
    if decided.approved and bytes(decided.form) != b"null":
        form = values.decode(await driver.value(decided.form))
    at = time_of(decided.at)
    return Answer(decided.approved, decided.by, decided.reason, form, at)
