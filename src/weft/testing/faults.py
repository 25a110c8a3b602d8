"""A store that fails as real stores do.

The fault model:

- *before*: the call fails and has no effect;
- *after*: the call has its effect but is reported as failed, because the answer is lost. This finds the most bugs;
- *late*: the call is reported as failed, and has its effect some time later, in the state of that time;
- *slow*: the request or the answer is delayed, so that calls overtake each other;
- *die*: the calling process dies, before or after the effect.

The model does not include faults that no serious store has: losing acknowledged writes, applying parts of an append or
a batch, and returning data that was never written. Faults are drawn per call, and a batch is one call. Reads can only
fail *before* or be slow.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

import msgspec

from weft.errors import Unavailable
from weft.ports.access import Access
from weft.ports.blobs import Blobs
from weft.ports.budgets import Budgets
from weft.ports.definitions import Definitions
from weft.ports.hosts import Hosts
from weft.ports.memos import Memos
from weft.ports.policies import PolicyVersions
from weft.ports.retention import Holds, Retention
from weft.ports.saved_views import SavedViews
from weft.ports.starts import RuledStarts
from weft.ports.step_logs import StepLogs
from weft.ports.store import Directory, Inboxes, RunLog, StoreDetails, TaskQueue
from weft.ports.streams import Streams
from weft.ports.tags import Tags
from weft.ports.tool_pins import ToolPins
from weft.ports.wals import Wals
from weft.ports.web_sessions import WebSessions
from weft.stores.memory import MemoryStore
from weft.testing.loop import PROCESS, SimLoop

WRITES = frozenset({
    "log.commit", "log.claim", "log.release", "log.send", "log.create", "log.write_run", "log.write_together",
    "log.mark_fault", "inboxes.send_to",
    "blobs.put", "hosts.beat", "tasks.offer", "tasks.take", "tasks.settle", "tasks.withdraw", "tasks.limit",
    "tasks.exchange", "tasks.finish",
    "definitions.put", "definitions.promote", "definitions.remove", "tags.write", "streams.write", "step_logs.write",
    "memos.put",
    "access.add", "access.revoke", "access.seed",
    "retention.doom", "retention.doom_each", "retention.clear", "retention.clear_streams",
    "retention.shorten", "holds.add", "holds.end",
    "holds.record", "hosts.describe", "saved_views.put", "saved_views.remove",
    "web_sessions.add", "web_sessions.touch", "web_sessions.end",
    "starts.set_rules", "starts.start", "starts.take_slot",
    "policies.put", "policies.take", "policies.give_back", "tool_pins.begin", "tool_pins.note", "tool_pins.accept",
    "wals.open", "wals.note", "wals.attach", "wals.mark_drained", "wals.agree_redis_id", "wals.see_redis_id",
    "wals.acknowledge_losses",
})  # fmt: skip
NEVER_FAIL = frozenset({"hosts.join", "hosts.leave"})
"""Calls that a process makes before it owns anything, or after."""
_SERVER = contextvars.Context()
"""The context of the store's server. It belongs to no process, so it continues when the caller is dead or frozen."""


class StoreCall:
    """One call of a port. ``apply`` carries it out at once."""

    __slots__ = ("_args", "_method", "_options", "what")

    def __init__(self, what: str, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.what = what
        self._method = method
        self._args = args
        self._options = options

    @property
    def subject(self) -> Any:
        """The first argument: the batch of a commit."""
        return self._args[0] if self._args else None

    @property
    def is_write(self) -> bool:
        return self.what in WRITES

    def apply(self) -> Any:
        """Carry out the call. A memory store never suspends, so its coroutines end at once."""
        coro = self._method(*self._args, **self._options)
        try:
            coro.send(None)
        except StopIteration as ended:
            return ended.value
        raise RuntimeError(f"{self.what} of a memory store suspended")


Carrier = Callable[[StoreCall], Awaitable[Any]]


class _Port:
    """A port whose calls all pass through the carrier."""

    def __init__(self, name: str, inner: object, carry: Carrier) -> None:
        self._name = name
        self._inner = inner
        self._carry = carry

    def __getattr__(self, method: str) -> Any:
        what = f"{self._name}.{method}"
        real = getattr(self._inner, method)
        if not callable(real):
            return real  # an attribute of the store, not a method
        carry = self._carry

        def call(*args: Any, **options: Any) -> Awaitable[Any]:
            return carry(StoreCall(what, real, args, options))

        setattr(self, method, call)
        return call


class WiredStore:
    """A memory store as one process sees it. Every call passes through ``carry``."""

    def __init__(self, inner: MemoryStore, carry: Carrier) -> None:
        self.url = inner.url
        self.offset_ms = inner.offset_ms
        self.inner = inner
        self.log = cast("RunLog", _Port("log", inner.log, carry))
        self.directory = cast("Directory", _Port("directory", inner.directory, carry))
        self.inboxes = cast("Inboxes", _Port("inboxes", inner.inboxes, carry))
        self.hosts = cast("Hosts", _Port("hosts", inner.hosts, carry))
        self.blobs = cast("Blobs", _Port("blobs", inner.blobs, carry))
        self.tasks = cast("TaskQueue", _Port("tasks", inner.tasks, carry))
        self.definitions = cast("Definitions", _Port("definitions", inner.definitions, carry))
        self.tags = cast("Tags", _Port("tags", inner.tags, carry))
        self.streams = cast("Streams", _Port("streams", inner.streams, carry))
        self.step_logs = cast("StepLogs", _Port("step_logs", inner.step_logs, carry))
        self.access = cast("Access", _Port("access", inner.access, carry))
        self.memos = cast("Memos", _Port("memos", inner.memos, carry))
        self.retention = cast("Retention", _Port("retention", inner.retention, carry))
        self.holds = cast("Holds", _Port("holds", inner.holds, carry))
        self.saved_views = cast("SavedViews", _Port("saved_views", inner.saved_views, carry))
        self.web_sessions = cast("WebSessions", _Port("web_sessions", inner.web_sessions, carry))
        self.starts = cast("RuledStarts", _Port("starts", inner.starts, carry))
        self.policies = cast("PolicyVersions", _Port("policies", inner.policies, carry))
        self.budgets = cast("Budgets", _Port("budgets", inner.budgets, carry))
        self.tool_pins = cast("ToolPins", _Port("tool_pins", inner.tool_pins, carry))
        self.wals = cast("Wals", _Port("wals", inner.wals, carry))

    async def details(self) -> StoreDetails:
        """Return the kind, schema and size of the store."""
        return await self.inner.details()

    async def open(self) -> None:
        """Do nothing, because there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing, because the content is kept."""


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The probability of each fault per call, from 0 to 1."""

    before: float = 0.0
    after: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    die: float = 0.0
    late_seconds_max: float = 5.0
    slow_seconds_max: float = 0.5


class FaultSource(Protocol):
    """The rates and the random source of faults, and the number of faults so far."""

    rates: Rates
    random: random.Random
    seen: Counter[str]


class FaultyStore(WiredStore):
    """A store in memory whose calls fail, come late or never return. ``faults`` may be changed at any time."""

    def __init__(self, inner: MemoryStore, loop: SimLoop, faults: FaultSource) -> None:
        super().__init__(inner, self._carry)
        self._loop = loop
        self._faults = faults

    async def _carry(self, call: StoreCall) -> Any:
        fault = self._draw(call)
        if not fault:
            return call.apply()
        self._faults.seen[fault] += 1
        match fault:
            case "before":
                raise Unavailable(f"{call.what} failed (simulated).")
            case "after":
                call.apply()
                raise Unavailable(f"The answer to {call.what} was lost (simulated).")
            case "late":
                delay = self._faults.random.uniform(0, self._faults.rates.late_seconds_max)
                self._loop.call_later(delay, _apply_late, call, context=_SERVER)
                raise Unavailable(f"{call.what} got no answer (simulated).")
            case "slow":
                return await self._slowly(call)
        return await self._dying(call, after=fault == "die_after")

    def _draw(self, call: StoreCall) -> str:
        if call.what in NEVER_FAIL:
            return ""
        rates = self._faults.rates
        luck = self._faults.random.random() - rates.slow
        if luck < 0:
            return "slow"
        luck -= rates.before
        if luck < 0:
            return "before"
        if call.what not in WRITES:
            return ""
        for kind, rate in (
            ("after", rates.after), ("late", rates.late), ("die_before", rates.die / 2), ("die_after", rates.die / 2),
        ):  # fmt: skip
            luck -= rate
            if luck < 0:
                return kind
        return ""

    async def _slowly(self, call: StoreCall) -> Any:
        """Delay the call, then its answer."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        there = self._faults.random.uniform(0, self._faults.rates.slow_seconds_max)
        back = self._faults.random.uniform(0, self._faults.rates.slow_seconds_max)
        self._loop.call_later(there, self._serve, call, answer, back, context=_SERVER)
        return await answer

    def _serve(self, call: StoreCall, answer: asyncio.Future[Any], back: float) -> None:
        try:
            result, error = call.apply(), None
        except Exception as raised:  # noqa: BLE001 - it is raised in the caller
            result, error = None, raised
        self._loop.call_later(back, _settle, answer, result, error, context=_SERVER)

    async def _dying(self, call: StoreCall, *, after: bool) -> Any:
        if after:
            call.apply()
        PROCESS.get().die()
        return await self._loop.create_future()


def _settle(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(result)


def _apply_late(call: StoreCall) -> None:
    """Apply a call later, when its caller no longer waits for the result."""
    try:
        call.apply()
    except Exception:  # noqa: BLE001 - a call that fails late has no effect
        return
