"""Code workflows: async functions. Calling one starts a run, or a child run if the caller is a workflow."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import msgspec

from weft.authoring.code_texts import texts_of
from weft.authoring.runnable import Invocation, Runnable, RunnableGroup
from weft.core import commands as c
from weft.core import values
from weft.core.budgets import BudgetLimits
from weft.errors import BudgetExceeded, LimitExceeded, NotAllowed, RunCancelled, RunFailed
from weft.runtime.key_limits import DeclaredLimit
from weft.runtime.orders import check_own_id
from weft.runtime.run.driver import CodeDriver, CodeScope, current_scope
from weft.runtime.service import RunService
from weft.runtime.start_rules import DeclaredRule
from weft.runtime.typed_words import reader_for_signature
from weft.steps.codec import Codec
from weft.steps.failures import rebuild_error
from weft.steps.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")


class Workflow(Runnable[R], Generic[P, R]):
    """A registered workflow.

    Calling it returns a coroutine, which is awaited or passed to ``app.run`` or ``app.start``.
    """

    version = ""
    timeout_ms = 0

    is_agent = False
    """Whether its runs are those of an agent."""

    def __init__(
        self,
        group: RunnableGroup,
        name: str,
        fn: Callable[..., Any],
        signature: Signature,
        *,
        version: str,
        timeout_ms: int,
        gives: str | tuple[str, ...] = (),
        review: tuple[str, ...] = (),
        rule: DeclaredRule | None = None,
        budget: BudgetLimits | None = None,
    ) -> None:
        self.gives = gives
        self.budget = budget
        self.rule = rule
        self.review = review
        self.name = name
        self.fn = fn
        self.signature = signature
        self.group: RunnableGroup = group
        self.version = version
        self.timeout_ms = timeout_ms
        self.limit: DeclaredLimit | None = None
        self.mcp = False
        """Whether MCP clients may start it."""
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", name)
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    @property
    def result(self) -> Codec[R]:
        return self.signature.result

    def given(self, input: Mapping[str, Any]) -> bytes:
        return self.signature.from_mapping(input, what=self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        given = self.signature.bind(args, kwargs, what=self.name)
        call = perform_workflow(Invocation(self, given))
        call.__qualname__ = self.name  # type: ignore[attr-defined]  # shown in Python's warning about a missing await
        return call

    def program(self, context: object) -> WorkflowProgram:
        """Return the program that its runs execute."""
        return WorkflowProgram(self, context)

    def __repr__(self) -> str:
        return f"<weft workflow {self.name} version {self.version}>"


class WorkflowProgram:
    """The program that runs of one code workflow execute."""

    def __init__(self, workflow: Workflow[Any, Any], context: object) -> None:
        self.name = workflow.name
        self.version = workflow.version
        self.defaults = workflow.signature.defaults
        self.review = workflow.review
        self.budget = workflow.budget
        self._workflow = workflow
        self._context = context

    def read(self, name: str, text: str) -> Any:
        """Parse an argument that was given as text, for example on the command line."""
        return reader_for_signature(self._workflow.signature)(name, text)

    def check(self, given: Mapping[str, Any] | bytes) -> bytes:
        return given if isinstance(given, bytes) else self._workflow.given(given)

    def texts(self) -> Iterable[str] | None:
        return texts_of(self._workflow.fn)

    def begin(self, driver: CodeDriver, given: bytes, defaults: bytes) -> Coroutine[Any, Any, Any]:
        arguments = self._workflow.signature.unpack(given, defaults, what=self.name)
        if self._workflow.signature.takes_context:
            return self._workflow.fn(self._context, **arguments)  # type: ignore[no-any-return]
        return self._workflow.fn(**arguments)  # type: ignore[no-any-return]

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Invocation:
        return self._workflow.group.root().invocation(call, given)

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Invocation:
        """Return the invocation that ``ctx.achieve`` starts: a run of these goals."""
        return self._workflow.group.root().achievement(goals, given)

    def service(self) -> RunService:
        """Return the run service of the app, for access to other runs."""
        return self._workflow.group.root().service

    def encode(self, value: Any) -> bytes:
        return self._workflow.signature.result.encode(value, what=f"{self.name} returned")


async def perform_workflow(invocation: Invocation) -> Any:
    """Run a workflow and return its result: as a child run inside a workflow, and as a separate run elsewhere."""
    scope = current_scope()
    if scope is None:
        assert invocation.workflow.group is not None, "a workflow must be registered before it is called"
        return await invocation.workflow.group.run_and_wait(invocation)
    return await perform_child(scope, invocation)


async def perform_child(
    scope: CodeScope,
    invocation: Invocation,
    *,
    run_id: str = "",
    due_ms: int = 0,
    budget: BudgetLimits | None = None,
) -> Any:
    """Start a child run at this location, or find the one recorded there, and return its result."""
    workflow = invocation.workflow
    entry = start_child(scope, invocation, run_id=run_id, due_ms=due_ms, budget=budget)
    driver = scope.driver
    await driver.outcome(entry)
    if entry.failure is None:
        return driver.read(workflow.result, await driver.value(entry.output), entry)
    raise child_failed(entry)


def child_failed(entry: Any) -> Exception:
    """Return the exception for a child run that failed, was cancelled, or did not end before the timeout."""
    # The location is that of the call in this run, not one in the child.
    failure = msgspec.structs.replace(entry.failure, location=entry.key)
    if failure.code == BudgetExceeded.code:
        return rebuild_error(failure)
    if not entry.child:
        # The child was never started, because a limit of the tree was reached or the tree is cancelled.
        if failure.code == RunCancelled.code:
            return RunCancelled(failure.message, run_id="")
        if failure.type == NotAllowed.__name__:
            return NotAllowed(failure.message, code=failure.code)
        return LimitExceeded(failure.message, code=failure.code)
    match msgspec.json.decode(entry.output):
        case None:
            return rebuild_error(failure)
        case "cancelled":
            return RunCancelled(f"{entry.child} was cancelled.", run_id=entry.child)
    # If a run below the child failed, the message names that run. With all runs in between, it would not fit.
    message = failure.message if failure.code == RunFailed.code else f"{entry.child} failed: {failure.message}"
    return RunFailed(message, run_id=entry.child, failure=failure)


def start_child(
    scope: CodeScope,
    invocation: Invocation,
    *,
    run_id: str = "",
    due_ms: int = 0,
    awaited: bool = True,
    budget: BudgetLimits | None = None,
) -> Any:
    """Return the entry of a child run at this location. Starts the run if none is recorded."""
    workflow = invocation.workflow
    driver = scope.driver
    digest = values.digest(invocation.given)
    n, entry = driver.find(scope, workflow.name, "child", digest, invocation.given)
    if entry is not None:
        return entry
    if run_id:
        check_own_id(run_id)
    due = driver.outside.now() + due_ms if due_ms else 0
    return driver.ask(
        c.StartChild(
            scope.prefix,
            workflow.name,
            n,
            workflow.name,
            workflow.version,
            workflow.style,
            driver.outside.keep(invocation.given),
            digest,
            run_id,
            due,
            awaited,
            workflow.timeout_ms,
            invocation.plan(),
            budget or workflow.budget,
        )
    )
