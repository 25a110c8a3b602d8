"""The control flow of code workflows: join, race, map and loop, on the private event loop of a run.

Only what replay cannot infer is recorded: the winner of a race, the number of items of a map, and the state of a loop's
current round. Branches are asyncio tasks. Each has a scope with its name, and operations inside it are recorded as
usual.
"""

from __future__ import annotations

import asyncio
import typing
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any

import msgspec

from weft.authoring.results import Again, Done, Err, Ok, Winner
from weft.core import commands as c
from weft.core.code.locations import check_name
from weft.core.code.state import Entry
from weft.errors import BadValue, BranchesFailed, Rollback, TimedOut, UsageError, WeftError
from weft.runtime.run.driver import CodeScope
from weft.runtime.run.private_loop import ScopedTask, error_of_task
from weft.runtime.run.scopes import CURRENT
from weft.steps.codec import Codec
from weft.steps.failures import failure_of, read_safely, recorded

_decode_name = msgspec.json.Decoder(str).decode


async def open_scope(name: str, kind: str) -> tuple[CodeScope, int, Entry | None, CodeScope]:
    """Open a named scope at the current place of the code.

    Returns the surrounding scope, the number of this use of the name there, the recorded entry if any, and the new
    scope.
    """
    scope = CURRENT.get()
    n, entry = scope.driver.find(scope, check_name(name), kind)
    await scope.driver.loop.block_if_end_ignored()
    return scope, n, entry, scope.inside(name, n)


def spawn_branch(inner: CodeScope, key: str, call: Coroutine[Any, Any, Any]) -> ScopedTask:
    """Start a task for one branch, in a scope of its own."""
    return inner.driver.loop.spawn(call, inner.branch(key))


class FinishOrder:
    """Yields tasks in the order in which they end. The cost per task does not depend on the number of tasks."""

    __slots__ = ("_ended", "_waiter")

    def __init__(self) -> None:
        self._ended: deque[ScopedTask] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def add(self, task: ScopedTask) -> None:
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._ended.append(task)  # type: ignore[arg-type]  # only tasks of this loop are added
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> ScopedTask:
        """Wait for the next task that ends."""
        while not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._ended.popleft()


async def wait_for_branches(inner: CodeScope, tasks: Mapping[str, ScopedTask], timeout_ms: int, *, first: bool) -> bool:
    """Wait until all branches have ended or, with ``first``, until one has succeeded.

    Returns False if the timeout came first.
    """
    finish_order = FinishOrder()
    for task in tasks.values():
        finish_order.add(task)
    timer = spawn_branch(inner, "!timeout", sleep_ms(timeout_ms)) if timeout_ms else None
    if timer is not None:
        finish_order.add(timer)
    running = len(tasks)
    try:
        while running:
            ended = await finish_order.next()
            if ended is timer:
                return False
            if first and _has_succeeded(ended):
                return True
            running -= 1
    finally:
        if timer is not None:
            await _cancel([timer])
    return True


async def sleep_ms(timeout_ms: int) -> None:
    """Sleep as part of another operation. The name of the timer cannot collide with a name of the user."""
    scope = CURRENT.get()
    driver = scope.driver
    n, entry = driver.find(scope, "!sleep", "sleep")
    if entry is None:
        entry = driver.ask(c.SetTimer(scope.prefix, "!sleep", n, driver.outside.now() + timeout_ms))
    await driver.outcome(entry)


async def _cancel(tasks: Iterable[ScopedTask]) -> None:
    """Cancel the tasks that are not done, and wait until they have cleaned up."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


def _has_succeeded(task: ScopedTask) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _close(calls: Iterable[Any]) -> None:
    for call in calls:
        close = getattr(call, "close", None)
        if close is not None:
            close()


def _raise_failures(name: str, tasks: Mapping[str, ScopedTask], total: int) -> None:
    ended = {key: error_of_task(task) for key, task in tasks.items()}
    errors = {key: error for key, error in ended.items() if error is not None}
    for error in errors.values():
        if not isinstance(error, Exception) or isinstance(error, Rollback):
            raise error
    if errors:
        failed = {key: error for key, error in errors.items() if isinstance(error, Exception)}
        listed = "; ".join(f"{key}: {_one_line(error)}" for key, error in list(failed.items())[:3])
        raise BranchesFailed(f"{name}: {len(failed)} of {total} branches failed: {listed}", failed)


def _one_line(error: Exception) -> str:
    """Return an error in one line, without its hint."""
    text = read_safely(lambda: error.message if isinstance(error, WeftError) else str(error), "")
    return f"{type(error).__name__}: {text.rstrip('. ')}" if text else type(error).__name__


async def join(name: str, calls: Mapping[str, Coroutine[Any, Any, Any]], timeout_ms: int) -> dict[str, Any]:
    """Wait for all branches. If some fail, the others still finish; then all failures are raised together."""
    for key in calls:
        check_name(key)
    _, _, _, inner = await open_scope(name, "join")
    tasks = {key: spawn_branch(inner, key, call) for key, call in calls.items()}
    try:
        in_time = await wait_for_branches(inner, tasks, timeout_ms, first=False) if tasks else True
    finally:
        await _cancel(tasks.values())
    if not in_time:
        raise TimedOut(f"{name} did not finish in time", code="wait.timed_out")
    _raise_failures(name, tasks, len(tasks))
    return {key: task.result() for key, task in tasks.items()}


async def race(name: str, calls: Mapping[str, Coroutine[Any, Any, Any]], timeout_ms: int) -> Winner[Any]:
    """Return the first branch that succeeds. The others are cancelled, and their entries are removed from the state."""
    if not calls:
        raise UsageError(f"The race {name!r} has no branches.", hint="Give it at least one call.")
    for key in calls:
        check_name(key)
    scope, n, entry, inner = await open_scope(name, "race")
    if entry is not None:
        return await _replay_race(inner, calls, entry, timeout_ms)
    tasks = {key: spawn_branch(inner, key, call) for key, call in calls.items()}
    try:
        in_time = await wait_for_branches(inner, tasks, timeout_ms, first=True)
        # Choose before the losers are cancelled: a loser that ignores its cancellation and returns has not won.
        winner = next((key for key, task in tasks.items() if _has_succeeded(task)), None)
    finally:
        await _cancel(tasks.values())
    if winner is None and in_time:
        _raise_failures(name, tasks, len(tasks))
    losers = [key for key in tasks if key != winner]
    entry = scope.driver.ask(c.DecideRace(scope.prefix, name, n, winner or "", losers))
    await scope.driver.outcome(entry)
    if winner is None:
        raise _race_timed_out(entry.key)
    return Winner(winner, tasks[winner].result())


async def _replay_race(
    inner: CodeScope, calls: Mapping[str, Coroutine[Any, Any, Any]], entry: Entry, timeout_ms: int
) -> Winner[Any]:
    """Replay only the branch of the winner. The state no longer has entries of the other branches."""
    winner = _decode_name(entry.output)
    _close(call for key, call in calls.items() if key != winner)
    if not winner:
        await spawn_branch(inner, "!timeout", sleep_ms(timeout_ms))
        await inner.driver.outcome(entry)
        raise _race_timed_out(entry.key)
    if winner not in calls:
        inner.driver.diverge(entry, f"the winner {winner!r}", f"a race of {', '.join(calls)}")
    value = await spawn_branch(inner, winner, calls[winner])
    await inner.driver.outcome(entry)
    return Winner(winner, value)


def _race_timed_out(name: str) -> TimedOut:
    return TimedOut(f"{name}: no branch finished in time", code="wait.timed_out")


async def map_items(
    name: str, fn: Callable[[Any], Coroutine[Any, Any, Any]], items: Iterable[Any], width: int, *, raising: bool
) -> list[Any]:
    """Apply ``fn`` to the items, at most ``width`` at once. Results are in the order of the items.

    With ``raising``, the first failure ends the map; otherwise every result is an ``Ok`` or an ``Err``.
    """
    if width < 1:
        raise BadValue(f"map({name!r}): width={width} must be at least 1.", code="value.bad_policy")
    scope, n, entry, inner = await open_scope(name, "map")
    todo = list(items)
    if entry is None:
        # The number of items is recorded to show the progress of the run.
        scope.driver.ask(c.RecordValue(scope.prefix, name, n, "map", msgspec.Raw(b"%d" % len(todo))))
    else:
        inner.driver.compare_items(inner, entry, len(todo))
    results: list[Any] = [None] * len(todo)
    running: dict[ScopedTask, int] = {}
    next_index = 0
    failed: dict[str, ScopedTask] = {}
    finish_order = FinishOrder()
    try:
        while (next_index < len(todo) or running) and not failed:
            while next_index < len(todo) and len(running) < width:
                task = spawn_branch(inner, f"~{next_index}", fn(todo[next_index]))
                finish_order.add(task)
                running[task] = next_index
                next_index += 1
            task = await finish_order.next()
            index = running.pop(task)
            error = error_of_task(task)
            if error is not None and not isinstance(error, Exception):
                raise error
            if error is not None and not raising and concerns_run(error):
                raise error
            if error is not None and raising:
                failed[f"~{index}"] = task
            else:
                results[index] = task.result() if raising else _outcome(task, error)
    finally:
        await _cancel(running)
    if failed:
        _raise_failures(name, failed, len(todo))
    return results


def _outcome(task: asyncio.Future[Any], error: BaseException | None) -> Ok[Any] | Err:
    return Ok(task.result()) if error is None else err_of(error)


def err_of(error: BaseException) -> Err:
    """Return an exception as an ``Err``."""
    return Err(recorded(error) or failure_of(error))


def concerns_run(error: BaseException) -> bool:
    """Return whether an error concerns the whole run, not only one call: a usage error, or ``weft.Rollback``."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(Rollback) is not None
    return isinstance(error, UsageError | Rollback)


async def loop(name: str, body: Callable[[Any], Awaitable[Any]], state: Any, keep: int) -> Any:
    """Run rounds of ``body`` until it is done.

    The state of each round is recorded. After a restart, the run continues with the current round.
    """
    if keep < 0:
        raise BadValue(f"loop({name!r}): keep={keep} must be 0 or more.", code="value.bad_policy")
    scope, n, entry, inner = await open_scope(name, "loop")
    driver = scope.driver
    state_codec, result_codec = _codecs(body, state)
    if entry is not None and entry.status == "done":
        await driver.outcome(entry)
        return driver.read(result_codec, await driver.value(entry.output), entry)
    number = 0
    if entry is not None:
        number = entry.round
        for earlier in range(max(0, number - keep), number):
            driver.mark_reached(f"{inner.prefix}~{earlier}/")
        state = driver.read(state_codec, await driver.value(entry.output), entry)
    while True:
        driver.begin_round()
        turn = await spawn_branch(inner, f"~{number}", _round(body, state))
        if isinstance(turn, Done):
            raw = result_codec.encode(turn.value, what=f"{name} ended with")
            driver.outside.issue(c.FinishLoop(scope.prefix, name, n, number + 1, driver.outside.keep(raw)))
            finished = driver.machine.lookup(inner.prefix[:-1])
            assert finished is not None
            await driver.outcome(finished)
            return result_codec.read(raw)
        if not isinstance(turn, Again):
            raise UsageError(
                f"The body of the loop {name!r} returned {type(turn).__name__}.",
                hint="Return weft.again(state) to continue, or weft.done(value) to end the loop.",
            )
        if driver.tell_cancel():
            # Let the cancellation arrive between two rounds, live and on replay: a round may not wait for anything.
            await asyncio.sleep(0)
        number += 1
        inner.counts.pop(f"~{number - keep - 2}", None)  # the state no longer has the entries of that round
        raw = state_codec.encode(turn.state, what=f"{name} continues with")
        driver.outside.issue(c.TurnLoop(scope.prefix, name, n, number, driver.outside.keep(raw), keep))
        state = state_codec.read(raw)


async def _round(body: Callable[[Any], Awaitable[Any]], state: Any) -> Any:
    return await body(state)


def _codecs(body: Callable[..., Any], state: Any) -> tuple[Codec[Any], Codec[Any]]:
    """Return the codecs of a loop's state and result.

    The types are those that the return annotation of the body names. Otherwise they are the type of the first state,
    and any JSON.
    """
    try:
        hint = typing.get_type_hints(body).get("return")
    except (NameError, TypeError):
        hint = None
    state_type: Any = type(state) if state is not None else Any
    result_type: Any = Any
    for part in typing.get_args(hint) or ((hint,) if hint is not None else ()):
        origin, arguments = typing.get_origin(part), typing.get_args(part)
        if origin is Again and arguments:
            state_type = arguments[0]
        elif origin is Done and arguments:
            result_type = arguments[0]
    return Codec.of(_any_for_typevar(state_type)), Codec.of(result_type)


def _any_for_typevar(type_: Any) -> Any:
    return Any if isinstance(type_, typing.TypeVar) else type_
