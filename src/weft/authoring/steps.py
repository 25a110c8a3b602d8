"""Steps: recorded when they are awaited in a workflow, and plain functions elsewhere."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from weft.authoring.needs import When
from weft.authoring.policies import Duration, Retry, policy_of
from weft.core import commands as c
from weft.core import values
from weft.core.code.locations import check_name
from weft.core.events import ABSENT, Policy, UndoPlan
from weft.errors import UsageError
from weft.runtime.key_limits import DeclaredLimit
from weft.runtime.run.driver import CodeScope
from weft.runtime.run.scopes import CURRENT
from weft.steps.failures import rebuild_error
from weft.steps.misfits import Misfit
from weft.steps.python import PythonStep
from weft.steps.resources import HostResources, resources_of
from weft.steps.signature import NOTHING, Signature

log = logging.getLogger("weft")

_NOTHING_DIGEST = values.digest(NOTHING)
_NOTHING_INPUT = msgspec.Raw(NOTHING)

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
U = TypeVar("U")


class Planning(msgspec.Struct, frozen=True):
    """The options of a step that goals are planned with."""

    gives: str | tuple[str, ...] = ()
    when: When | None = None
    width: int = 1
    cache_ms: int | None = None
    labels: Mapping[str, str] = {}


class StepGroup(Protocol):
    """What a step uses of the group that it is registered in."""

    def add_step(self, fn: Callable[..., Any], *, name: str | None) -> Step[Any, Any]:
        """Register a function as a step."""
        ...

    def redefine(self, step: Step[Any, Any]) -> None:
        """Define a step again, because an undo was registered for it."""
        ...

    def open_resources(self) -> HostResources | None:
        """Return the resources that are open, if this process hosts the app."""
        ...


class Step(Generic[P, R]):
    """A registered step. Calling it returns a coroutine, and awaiting the coroutine performs the step."""

    def __init__(
        self,
        group: StepGroup,
        body: PythonStep,
        signature: Signature,
        policy: Policy,
        raises: Sequence[type[Exception]],
        *,
        planning: Planning,
    ) -> None:
        self.planning = planning
        self.name: str = body.name
        self.fn: Callable[..., Any] = body.fn
        self.signature = signature
        self.policy = policy
        self.body = body
        self.raises = tuple(raises)
        self.undo_plan: UndoPlan | None = None
        self.group = group
        self.limit: DeclaredLimit | None = None
        self._has_warned = False
        self.__doc__ = body.fn.__doc__
        self.__name__ = getattr(body.fn, "__name__", body.name)
        self.__qualname__ = getattr(body.fn, "__qualname__", self.__name__)
        self.__module__ = body.fn.__module__
        self.__wrapped__ = body.fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        given = self.signature.bind(args, kwargs, what=self.name)
        call = _perform(self, given)
        call.__qualname__ = self.name  # type: ignore[attr-defined]  # shown in Python's warning about a missing await
        return call

    @property
    def gives(self) -> str | tuple[str, ...]:
        """The facts that the step provides to goals."""
        return self.planning.gives

    def options(
        self,
        *,
        name: str | None = None,
        retries: int | Retry | None = None,
        timeout: Duration | None = None,
        queue: str | None = None,
    ) -> Step[P, R]:
        """Return the same step with other policies, or recorded under another name."""
        changed: Step[P, R] = object.__new__(Step)
        changed.__dict__.update(self.__dict__)
        if name is not None:
            changed.name = check_name(name)
        old = self.policy
        changed.policy = policy_of(
            retries=retries if retries is not None else _retry_of(old),
            timeout=timeout if timeout is not None else (old.timeout_ms / 1000 if old.timeout_ms else None),
            effect=old.effect,
            queue=queue if queue is not None else old.queue,
        )
        return changed

    def undo(self, fn: Callable[Q, U]) -> Callable[Q, U]:
        """Register the function that undoes this step.

        Its parameters may be any of the step's parameters, by name, and ``result``.
        """
        if self.undo_plan is not None:
            raise UsageError(f"{self.name} already has an undo ({self.undo_plan.step}).", code="usage.name_taken")
        undo: Step[Any, Any] = self.group.add_step(fn, name=None)
        known = {parameter.name for parameter in self.signature.parameters} | {"result"}
        takes = [parameter.name for parameter in undo.signature.parameters]
        unknown = [p.name for p in undo.signature.parameters if p.required and p.name not in known]
        if unknown:
            raise UsageError(
                f"{undo.name}, the undo of {self.name}, needs {', '.join(unknown)}, which {self.name} does not have.",
                hint=f"Its parameters may be {', '.join(sorted(known))}.",
            )
        self.undo_plan = UndoPlan(
            step=undo.name,
            takes=[name for name in takes if name in known],
            policy=undo.policy,
            defaults=msgspec.Raw(defaults) if (defaults := self.signature.defaults(None)) else ABSENT,
        )
        self.group.redefine(self)
        return undo  # type: ignore[return-value]  # a Step is called like its function

    def __repr__(self) -> str:
        return f"<weft step {self.name}>"


async def _perform(step: Step[Any, R], given: bytes) -> R:
    """Perform a step when its call is awaited."""
    scope: CodeScope | None = CURRENT.get(None)
    if scope is None:
        return await _call_function(step, given)
    driver = scope.driver
    digest = _NOTHING_DIGEST if given is NOTHING else values.digest(given)
    n, entry = driver.find_step(scope, step.name, digest, given)
    if entry is None:
        entry = driver.schedule(
            c.ScheduleTask(
                scope.prefix,
                step.name,
                n,
                step.body.name,
                _NOTHING_INPUT if given is NOTHING else driver.outside.keep(given),
                digest,
                step.policy,
                step.undo_plan,
                passed=driver.passed(scope, step.policy) if driver.machine.state.earlier else (),
            )
        )
    if n and (entry.status == "open" or not driver.is_outcome_known(entry)):
        try:
            await driver.future_of(entry)
        except asyncio.CancelledError:
            driver.abandon(entry)
            raise
    if entry.failure is None:
        raw: bytes = entry.output
        if n and bytes(raw).startswith(values.MARKED):
            raw = await driver.value(entry.output)
        try:
            read = step.signature.result.read
            result: R = read(raw)
        except Misfit as misfit:
            driver.refuse_type(entry, misfit)
            raise
        return result
    raise rebuild_error(entry.failure, step.raises, run_id=driver.machine.state.run_id)


async def _call_function(step: Step[Any, R], given: bytes) -> R:
    """Call the function of a step outside a workflow. This is logged once per step."""
    if not step._has_warned:  # noqa: SLF001
        step._has_warned = True  # noqa: SLF001
        log.info(
            "weft: %s was called outside a workflow, so it runs as a plain function and is not recorded", step.name
        )
    arguments = step.signature.unpack(given, what=step.name)
    if injected := step.signature.injected:
        arguments.update(await resources_of(step.name, injected, step.group.open_resources()))
    value = step.fn(**arguments)
    if inspect.isawaitable(value):
        value = await value
    return value  # type: ignore[no-any-return]


def _retry_of(policy: Policy) -> Retry:
    return Retry(
        policy.attempts_max,
        policy.backoff,
        timedelta(milliseconds=policy.delay_ms),
        timedelta(milliseconds=policy.delay_ms_max),
    )
