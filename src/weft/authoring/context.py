"""The context of a workflow: everything that it can do besides calling steps. Every wait survives a restart."""

from __future__ import annotations

import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar, overload
from uuid import UUID

import msgspec
from msgspec import Raw

from weft.agents.budget import Budget, limits_of
from weft.authoring import control_flow, messages
from weft.authoring.facts import Facts
from weft.authoring.handles import ChildHandle
from weft.authoring.inline_steps import perform_inline
from weft.authoring.messages import MISSING, Message, MessageWait
from weft.authoring.policies import Duration, Retry, policy_of
from weft.authoring.question_options import OnTimeout, check_quorum, read_on_timeout
from weft.authoring.results import Answer, Err, Ok, Turn, Winner
from weft.authoring.runnable import Invocation, Runnable
from weft.authoring.steps import Step
from weft.authoring.workflows import child_failed, perform_child, start_child
from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name, location_key
from weft.core.durations import duration_ms, time_of
from weft.core.events import Effect, UndoPlan
from weft.errors import BadValue, NoContext, UsageError
from weft.runtime.run.driver import CodeScope, current_scope
from weft.steps.codec import Codec
from weft.steps.failures import rebuild_error
from weft.steps.task import chunk_of

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Call = Coroutine[Any, Any, R]
KINDS = tuple("step sleep receive ask join race map loop child now random uuid version set answer".split())  # noqa: SIM905


class _RecordedAnswer(msgspec.Struct):
    approved: bool
    by: list[str]
    reason: str
    form: Raw
    at: int


_read_answer = msgspec.json.Decoder(_RecordedAnswer).decode


class Context:
    """What a workflow can do besides calling steps. One object serves all runs and acts on the run that uses it."""

    __slots__ = ()

    # --- the run --------------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return _scope().driver.machine.state.run_id

    @property
    def scheduled_at(self) -> datetime | None:
        """The time for which a schedule started this run; None if it was started by hand."""
        at = _scope().driver.machine.state.scheduled_at
        return time_of(at) if at else None

    @property
    def evicted(self) -> bool:
        """Whether the run is only being removed from memory. Everything that the code does then is ignored."""
        return _scope().driver.evicted

    # --- steps ----------------------------------------------------------------------------------------------------

    @overload
    async def step(
        self,
        name: str,
        fn: Callable[[], Call[R]],
        *,
        retries: int | Retry = 3,
        timeout: Duration | None = None,
        undo: Step[Any, Any] | Callable[..., Any] | None = None,
        effect: Effect = "idempotent",
        ephemeral: bool = False,
    ) -> R: ...
    @overload
    async def step(
        self,
        name: str,
        fn: Callable[[], R],
        *,
        retries: int | Retry = 3,
        timeout: Duration | None = None,
        undo: Step[Any, Any] | Callable[..., Any] | None = None,
        effect: Effect = "idempotent",
        ephemeral: bool = False,
    ) -> R: ...
    async def step(
        self,
        name: str,
        fn: Callable[[], Any],
        *,
        retries: int | Retry = 3,
        timeout: Duration | None = None,
        undo: Step[Any, Any] | Callable[..., Any] | None = None,
        effect: Effect = "idempotent",
        ephemeral: bool = False,
    ) -> Any:
        """Run a function as a step.

        An ``ephemeral`` step has no effects outside the run, so it may start before it is recorded.
        """
        scope = _scope()

        def ask(n: int) -> c.ScheduleTask:
            policy = policy_of(retries=retries, timeout=timeout, effect=effect)
            return c.ScheduleTask(
                scope.prefix,
                name,
                n,
                name,
                Raw(b"{}"),
                "",
                policy,
                _undo_plan(name, undo),
                inline=True,
                early=ephemeral,
                passed=scope.driver.passed(scope, policy),
            )

        return await perform_inline(scope, name, fn, _result_codec(fn), ask)

    async def try_step(self, call: Call[R]) -> Ok[R] | Err:
        """Perform a call and return its result as ``Ok`` or its failure as ``Err``."""
        try:
            return Ok(await call)
        except Exception as error:
            if control_flow.concerns_run(error):
                raise
            return control_flow.err_of(error)

    # --- time -----------------------------------------------------------------------------------------------------

    async def sleep(self, duration: Duration, *, name: str = "sleep") -> None:
        """Sleep for a duration. A restart does not begin the duration again."""
        await self._sleep(name, lambda now: now + duration_ms(duration))

    async def sleep_until(self, when: datetime, *, name: str = "sleep") -> None:
        """Sleep until a time. Returns immediately if the time has passed."""
        if when.tzinfo is None:
            raise BadValue(
                f"sleep_until({when.isoformat()}) has no time zone.",
                hint="Write datetime(…, tzinfo=UTC).",
                code="value.wrong_type",
            )
        await self._sleep(name, lambda _: int(when.timestamp() * 1000))

    async def _sleep(self, name: str, due: Callable[[int], int]) -> None:
        scope = _scope()
        driver = scope.driver
        n, entry = driver.find(scope, check_name(name), "sleep")
        if entry is None:
            entry = driver.ask(c.SetTimer(scope.prefix, name, n, due(driver.outside.now())))
        await driver.outcome(entry)

    # --- messages and people --------------------------------------------------------------------------------------

    @overload
    async def receive(
        self, name: str, type: type[T], *, timeout: Duration | None = None, answer: Literal[False] = False
    ) -> T: ...
    @overload
    async def receive(
        self, name: str, type: type[T], *, timeout: Duration | None = None, default: D, answer: Literal[False] = False
    ) -> T | D: ...
    @overload
    async def receive(
        self, name: str, *, timeout: Duration | None = None, default: Any = ..., answer: Literal[False] = False
    ) -> Any: ...
    @overload
    async def receive(
        self, name: str, type: type[T], *, timeout: Duration | None = None, answer: Literal[True]
    ) -> Message[T]: ...
    @overload
    async def receive(
        self, name: str, type: type[T], *, timeout: Duration | None = None, default: D, answer: Literal[True]
    ) -> Message[T] | D: ...
    @overload
    async def receive(self, name: str, *, timeout: Duration | None = None, answer: Literal[True]) -> Message[Any]: ...
    @overload
    async def receive(
        self, name: str, *, timeout: Duration | None = None, default: D, answer: Literal[True]
    ) -> Message[Any] | D: ...
    async def receive(
        self,
        name: str,
        type: Any = Any,
        *,
        timeout: Duration | None = None,
        default: Any = MISSING,
        answer: bool = False,
    ) -> Any:
        """Return the body of the next message of this name.

        A message of the wrong type is refused and recorded, and the wait continues. ``answer=True`` returns the message
        itself, to be answered with ``await message.answer(value)``.
        """
        wait = MessageWait([check_name(name)], timeout=timeout, answer=answer)
        received = await messages.receive(_scope(), wait, Codec.of(type), default)
        return received.body if isinstance(received, Message) and not answer else received

    async def messages(self, *names: str, most: int = 1, timeout: Duration | None = None) -> list[Message[Any]]:
        """Return 1 to ``most`` messages in order of arrival, or an empty list after the timeout.

        With ``names``, only messages with one of these names are returned.
        """
        if most < 1:
            raise BadValue(f"messages(most={most}) must be at least 1.", code="value.bad_policy")
        place = "+".join(check_name(name) for name in names) if names else "messages"
        return await messages.receive_several(_scope(), place, MessageWait(list(names), most, timeout, answer=True))

    async def send(self, run_id: str, name: str, body: Any = None) -> None:
        """Send a message to another run exactly once. Raises NotFound, or RunFinished if that run has ended."""
        program = _scope().driver.program
        sender = self.run_id

        async def deliver() -> messages.Refusal | None:
            return await messages.send(program.service(), sender, run_id, (name, body))

        refusal = await self.step(f"send {check_name(name)}", deliver)
        if refusal is not None:
            raise refusal.error()

    @overload
    async def ask(
        self,
        name: str,
        *,
        title: str,
        form: type[T],
        of: Iterable[str] = (),
        about: Any = None,
        quorum: Literal["any", "all"] | int = "any",
        timeout: Duration | None = None,
        on_timeout: OnTimeout = "fail",
        remind: Duration | None = None,
        four_eyes: bool = False,
    ) -> Answer[T]: ...
    @overload
    async def ask(
        self,
        name: str,
        *,
        title: str,
        form: None = None,
        of: Iterable[str] = (),
        about: Any = None,
        quorum: Literal["any", "all"] | int = "any",
        timeout: Duration | None = None,
        on_timeout: OnTimeout = "fail",
        remind: Duration | None = None,
        four_eyes: bool = False,
    ) -> Answer[None]: ...
    async def ask(
        self,
        name: str,
        *,
        title: str,
        form: Any = None,
        of: Iterable[str] = (),
        about: Any = None,
        quorum: Literal["any", "all"] | int = "any",
        timeout: Duration | None = None,
        on_timeout: OnTimeout = "fail",
        remind: Duration | None = None,
        four_eyes: bool = False,
    ) -> Answer[Any]:
        """Ask people and wait for their decision.

        They see the title, what it is about, and the form. ``on_timeout`` says what happens without an answer; it may
        also be ``{"escalate": who}``. ``remind`` is the interval of reminders. With ``four_eyes``, the person who
        started the run may not decide.
        """
        asked = list(of)
        policy, escalate = read_on_timeout(on_timeout)
        check_quorum(quorum, asked)
        values.encode([title, *asked, *escalate], what=f"the question {name!r} has")
        scope = _scope()
        driver = scope.driver
        codec: Codec[Any] | None = Codec.of(form) if form is not None else None
        n, entry = driver.find(scope, check_name(name), "ask")
        if entry is None:
            subject = driver.outside.keep(values.encode(about, what=f"{name} is about"))
            due = driver.outside.now() + duration_ms(timeout) if timeout is not None else 0
            schema = codec.schema() if codec is not None else None
            remind_ms = duration_ms(remind) if remind is not None else 0
            command = c.OpenAsk(scope.prefix, name, n, title, schema, subject, asked, quorum, due, policy)
            entry = driver.ask(
                msgspec.structs.replace(command, escalate=escalate, four_eyes=four_eyes, remind_ms=remind_ms)
            )
        await driver.outcome(entry)
        if entry.failure is not None:
            raise rebuild_error(entry.failure, run_id=self.run_id)
        answer = _read_answer(await driver.value(entry.output))
        filled = None
        if codec is not None and answer.approved and bytes(answer.form) != b"null":
            filled = driver.read(codec, await driver.value(answer.form), entry)
        return Answer(answer.approved, answer.by, answer.reason, filled, time_of(answer.at))

    # --- many at once ---------------------------------------------------------------------------------------------

    @overload
    async def join(self, name: str, a: Call[A], b: Call[B], /) -> tuple[A, B]: ...
    @overload
    async def join(self, name: str, a: Call[A], b: Call[B], c: Call[C], /) -> tuple[A, B, C]: ...
    @overload
    async def join(self, name: str, a: Call[A], b: Call[B], c: Call[C], d: Call[D], /) -> tuple[A, B, C, D]: ...
    @overload
    async def join(
        self, name: str, a: Call[A], b: Call[B], c: Call[C], d: Call[D], e: Call[E], /
    ) -> tuple[A, B, C, D, E]: ...
    @overload
    async def join(
        self, name: str, calls: Mapping[str, Call[T]], /, *, timeout: Duration | None = None
    ) -> dict[str, T]: ...
    async def join(self, name: str, *calls: Any, timeout: Duration | None = None) -> Any:
        """Run calls at the same time and return all results. Failures are raised together when all have ended."""
        limit = duration_ms(timeout) if timeout is not None else 0
        if len(calls) == 1 and isinstance(calls[0], Mapping):
            return await control_flow.join(name, calls[0], limit)
        results = await control_flow.join(name, {str(i): call for i, call in enumerate(calls)}, limit)
        return tuple(results.values())

    async def race(self, name: str, calls: Mapping[str, Call[T]], *, timeout: Duration | None = None) -> Winner[T]:
        """Run calls at the same time and return the first that succeeds.

        The others are cancelled. Branches should not share variables, because replay runs only the winner's code.
        """
        return await control_flow.race(name, calls, duration_ms(timeout) if timeout is not None else 0)

    async def map(self, name: str, fn: Callable[[T], Call[R]], items: Iterable[T], *, width: int = 16) -> list[R]:
        """Call ``fn`` for each item, at most ``width`` at once, and return the results in the order of the items."""
        return await control_flow.map_items(name, fn, items, width, raising=True)

    async def map_outcomes(
        self, name: str, fn: Callable[[T], Call[R]], items: Iterable[T], *, width: int = 16
    ) -> list[Ok[R] | Err]:
        """Apply a function to items like ``map``, but return failures in the list instead of raising them."""
        return await control_flow.map_items(name, fn, items, width, raising=False)

    async def loop(
        self, name: str, body: Callable[[S], typing.Awaitable[Turn[S, R]]], *, state: S, keep: int = 20
    ) -> R:
        """Call ``body`` until it returns ``done``. Each state is recorded; older rounds are dropped from the state."""
        return await control_flow.loop(name, body, state, keep)  # type: ignore[no-any-return]

    # --- other runs -----------------------------------------------------------------------------------------------

    @overload
    async def call(
        self,
        call: Call[R],
        /,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        budget: Budget | None = None,
    ) -> R: ...
    @overload
    async def call(
        self,
        workflow: Runnable[R],
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        budget: Budget | None = None,
    ) -> R: ...
    @overload
    async def call(
        self,
        workflow: str,
        input: Mapping[str, Any] = ...,
        /,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        budget: Budget | None = None,
    ) -> Any: ...
    async def call(
        self,
        call: Any,
        input: Mapping[str, Any] | None = None,
        /,
        *,
        id: str | None = None,
        timeout: Duration | None = None,
        budget: Budget | None = None,
    ) -> Any:
        """Start a child run, wait for it, and return its result.

        ``budget`` is what the child, with everything below it, may spend, besides the budgets above it.
        """
        scope, limits = _scope(), limits_of(budget)
        limit = duration_ms(timeout) if timeout is not None else 0
        invocation = _invocation(scope, call, input)
        return await perform_child(scope, invocation, run_id=id or "", due_ms=limit, budget=limits)

    @overload
    async def spawn(self, call: Call[R], /, *, id: str | None = None) -> ChildHandle[R]: ...
    @overload
    async def spawn(
        self, workflow: Runnable[R], input: Mapping[str, Any] = ..., /, *, id: str | None = None
    ) -> ChildHandle[R]: ...
    @overload
    async def spawn(
        self, workflow: str, input: Mapping[str, Any] = ..., /, *, id: str | None = None
    ) -> ChildHandle[Any]: ...
    async def spawn(self, call: Any, input: Mapping[str, Any] | None = None, /, *, id: str | None = None) -> Any:
        """Start a child run without waiting for it, and return its handle."""
        scope = _scope()
        invocation = _invocation(scope, call, input)
        entry = start_child(scope, invocation, run_id=id or "", awaited=False)
        await scope.driver.loop.block_if_end_ignored()
        if not entry.child:
            raise child_failed(await scope.driver.outcome(entry))

        return ChildHandle(scope.driver, entry, invocation.workflow.result, child_failed)

    async def achieve(
        self, *goals: str | Step[..., Any] | Runnable[Any], given: Mapping[str, Any] | None = None
    ) -> Facts:
        """Achieve goals from the given facts, in a child run that plans its steps."""
        scope = _scope()
        invocation = scope.driver.program.achievement(goals, given or {})
        assert isinstance(invocation, Invocation)
        return await perform_child(scope, invocation)  # type: ignore[no-any-return]

    # --- recorded values ------------------------------------------------------------------------------------------

    async def now(self) -> datetime:
        """Return the current time, the same on every replay."""
        raw = await self._value("now", "now", lambda scope: str(scope.driver.outside.now()).encode())
        return time_of(int(raw))

    async def random(self) -> float:
        """Return a random number of at least 0 and less than 1, the same on every replay."""
        raw = await self._value(
            "random", "random", lambda scope: b"%.17g" % (int(scope.driver.new_id()[-13:], 16) / 16**13)
        )
        return float(raw)

    async def uuid(self) -> UUID:
        """Return a new UUID, the same on every replay."""
        raw = await self._value("uuid", "uuid", lambda scope: b'"%s"' % scope.driver.new_id().encode())
        return UUID(raw.decode().strip('"'))

    async def version(self, name: str, latest: int) -> int:
        """Return which version of a piece of code this run uses.

        The version is 1 if the run passed this place before the code had versions, and otherwise ``latest``.
        """
        if latest < 1:
            raise BadValue(f"version({name!r}, {latest}): versions begin at 1.", code="value.bad_policy")
        raw = await self._value(
            check_name(name),
            "version",
            lambda scope: b"1" if scope.driver.unvisited(scope) else b"%d" % latest,
        )
        return int(raw)

    async def removed(self, name: str, kind: str) -> None:
        """Declare that older code had an operation with this name and kind here. Its recorded result is skipped."""
        if kind not in KINDS:
            raise BadValue(
                f"removed({name!r}, {kind!r}): there is no such kind.", hint=f"The kinds are {', '.join(KINDS)}."
            )
        scope = _scope()
        scope.driver.recorded(scope, check_name(name), kind)
        await scope.driver.at_once(new=False)

    async def set(self, **attributes: Any) -> None:
        """Set attributes by which runs can be found. None removes one."""
        scope = _scope()
        driver = scope.driver
        n, entry = driver.find(scope, "set", "set")
        await driver.at_once(new=entry is None)
        if entry is None:
            as_json = values.decode(values.encode(attributes, what="the attributes have"))
            driver.ask(c.SetAttributes(scope.prefix, "set", n, as_json))

    async def emit(self, stream: str, chunk: Any) -> None:
        """Write to an output stream of the run. Streams are not part of the log, and replay does not write again."""
        scope = _scope()
        raw = chunk_of(check_name(stream), chunk)
        n, _ = scope.driver.find(scope, f"!{stream}", "emit")
        await scope.driver.at_once(new=False)
        scope.driver.outside.emit(stream, raw, location_key(scope.prefix, f"!{stream}", n))

    async def _value(
        self, name: str, of: Literal["now", "random", "uuid", "version"], make: Callable[[CodeScope], bytes]
    ) -> bytes:
        scope = _scope()
        driver = scope.driver
        n, entry = driver.find(scope, name, of)
        await driver.at_once(new=entry is None)
        if entry is None:
            entry = driver.ask(c.RecordValue(scope.prefix, name, n, of, Raw(make(scope))))
        return bytes(entry.output)


THE_CONTEXT = Context()


def context() -> Context:
    """Return the context of the current workflow. Raises NoContext outside a workflow."""
    if current_scope() is None:
        raise NoContext(
            "weft.context() outside a workflow.",
            hint="In a step use weft.task(); in a script start a workflow: app.run(order(...)).",
        )
    return THE_CONTEXT


def _scope() -> CodeScope:
    scope = current_scope()
    if scope is None:
        raise NoContext(
            "The context was used outside its workflow.",
            hint="Use it in the workflow's own code; in a step use weft.task().",
        )
    return scope


def _result_codec(fn: Callable[..., Any]) -> Codec[Any]:
    try:
        hint = typing.get_type_hints(fn).get("return", Any)
    except (NameError, TypeError):
        hint = Any
    if typing.get_origin(hint) in (Coroutine, typing.Awaitable):
        hint = typing.get_args(hint)[-1]
    return Codec.of(hint)


def _undo_plan(name: str, undo: Step[Any, Any] | Callable[..., Any] | None) -> UndoPlan | None:
    if undo is None:
        return None
    if not isinstance(undo, Step):
        raise UsageError(
            f"The undo of {name!r} must be a registered step.",
            hint="Decorate it with @app.step, because an undo may run in another process, long after this code ended.",
        )
    names = [parameter.name for parameter in undo.signature.parameters]
    if names not in ([], ["result"]):
        raise UsageError(f"The undo of {name!r} may take only `result`, not {', '.join(names)}.")
    return UndoPlan(step=undo.body.name, takes=names, policy=undo.policy)


def _invocation(scope: CodeScope, call: Any, given: Mapping[str, Any] | None) -> Invocation:
    invocation = scope.driver.program.invocation(call, given)
    assert isinstance(invocation, Invocation)
    return invocation
