"""join, race, map and loop, on the private loop of a run.

Only what replay cannot work out by itself is recorded: who won a race (its losers leave the state), and the round of a
loop. Branches are asyncio tasks with scopes named after them, so what happens inside is recorded like anything else.
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
from weft.runtime.run.private_loop import ScopedTask, error_of
from weft.runtime.run.scopes import CURRENT
from weft.steps.codec import Codec
from weft.steps.failures import failure_of, recorded, told

_decode_name = msgspec.json.Decoder(str).decode


def open_place(name: str, kind: str) -> tuple[CodeScope, int, Entry | None, CodeScope]:
    """Return the next use of a name where the code is: its scope, its number, what is recorded, the scope inside."""
    scope = CURRENT.get()
    n, entry = scope.driver.find(scope, check_name(name), kind)
    return scope, n, entry, scope.inside(name, n)


def branch(inner: CodeScope, key: str, call: Coroutine[Any, Any, Any]) -> ScopedTask:
    """Start a task for one branch, in a scope of its own."""
    return inner.driver.loop.spawn(call, inner.branch(key))


class Finish:
    """Tells in which order tasks end, at a cost per task that does not depend on how many there are."""

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


async def wait_for(inner: CodeScope, tasks: Mapping[str, ScopedTask], timeout_ms: int, *, first: bool) -> bool:
    """Wait for the branches (``first``: for one that succeeded, or for all); False when the time was up before."""
    finish = Finish()
    for task in tasks.values():
        finish.add(task)
    clock = branch(inner, "!timeout", sleep_ms(timeout_ms)) if timeout_ms else None
    if clock is not None:
        finish.add(clock)
    left = len(tasks)
    try:
        while left:
            ended = await finish.next()
            if ended is clock:
                return False
            if first and _has_succeeded(ended):
                return True
            left -= 1
    finally:
        if clock is not None:
            await _end([clock])
    return True


async def sleep_ms(timeout_ms: int) -> None:
    """Sleep as part of an operation, under none of the user's names."""
    scope = CURRENT.get()
    driver = scope.driver
    n, entry = driver.find(scope, "!sleep", "sleep")
    if entry is None:
        entry = driver.ask(c.SetTimer(scope.prefix, "!sleep", n, driver.outside.now() + timeout_ms))
    await driver.outcome(entry)


async def _end(tasks: Iterable[ScopedTask]) -> None:
    """Cancel what is not done and let it clean up."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)


def _has_succeeded(task: ScopedTask) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _close(calls: Iterable[Any]) -> None:
    for call in calls:
        close = getattr(call, "close", None)
        if close is not None:
            close()


def _raise_failures(name: str, tasks: Mapping[str, ScopedTask], total: int) -> None:
    ended = {key: error_of(task) for key, task in tasks.items()}
    errors = {key: error for key, error in ended.items() if error is not None}
    for error in errors.values():
        if not isinstance(error, Exception) or isinstance(error, Rollback):
            raise error
    if errors:
        failed = {key: error for key, error in errors.items() if isinstance(error, Exception)}
        listed = "; ".join(f"{key}: {_brief(error)}" for key, error in list(failed.items())[:3])
        raise BranchesFailed(f"{name}: {len(failed)} of {total} branches failed: {listed}", failed)


def _brief(error: Exception) -> str:
    """Return an error in one line, without its hint, which is added once at the end."""
    text = told(lambda: error.message if isinstance(error, WeftError) else str(error), "")
    return f"{type(error).__name__}: {text.rstrip('. ')}" if text else type(error).__name__


async def join(name: str, calls: Mapping[str, Coroutine[Any, Any, Any]], timeout_ms: int) -> dict[str, Any]:
    """Wait for all branches. If some fail, the others still finish; then all failures are raised together."""
    for key in calls:
        check_name(key)
    _, _, _, inner = open_place(name, "join")
    tasks = {key: branch(inner, key, call) for key, call in calls.items()}
    try:
        in_time = await wait_for(inner, tasks, timeout_ms, first=False) if tasks else True
    finally:
        await _end(tasks.values())
    if not in_time:
        raise TimedOut(f"{name} did not finish in time", code="wait.timed_out")
    _raise_failures(name, tasks, len(tasks))
    return {key: task.result() for key, task in tasks.items()}


async def race(name: str, calls: Mapping[str, Coroutine[Any, Any, Any]], timeout_ms: int) -> Winner[Any]:
    """Return the first that succeeds. The others are cancelled, and what they recorded leaves the state."""
    if not calls:
        raise UsageError(f"The race {name!r} has no branches.", hint="Give it at least one call.")
    for key in calls:
        check_name(key)
    scope, n, entry, inner = open_place(name, "race")
    if entry is not None:
        return await _replay_race(inner, calls, entry, timeout_ms)
    tasks = {key: branch(inner, key, call) for key, call in calls.items()}
    try:
        in_time = await wait_for(inner, tasks, timeout_ms, first=True)
        # Before the losers are cancelled: one that ignores that and returns has not won.
        winner = next((key for key, task in tasks.items() if _has_succeeded(task)), None)
    finally:
        await _end(tasks.values())
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
    """Replay only the winner's branch.

    Nothing is left of the others, but they may have delayed the end.
    """
    winner = _decode_name(entry.output)
    _close(call for key, call in calls.items() if key != winner)
    if not winner:
        await branch(inner, "!timeout", sleep_ms(timeout_ms))
        await inner.driver.outcome(entry)
        raise _race_timed_out(entry.key)
    if winner not in calls:
        inner.driver.diverge(inner.prefix, f"the winner {winner!r}", f"a race of {', '.join(calls)}")
    value = await branch(inner, winner, calls[winner])
    await inner.driver.outcome(entry)
    return Winner(winner, value)


def _race_timed_out(name: str) -> TimedOut:
    return TimedOut(f"{name}: nobody finished in time", code="wait.timed_out")


async def map_items(
    name: str, fn: Callable[[Any], Coroutine[Any, Any, Any]], items: Iterable[Any], width: int, *, raising: bool
) -> list[Any]:
    """Apply ``fn`` to the items, at most ``width`` at once. Results are in the order of the items."""
    if width < 1:
        raise BadValue(f"map({name!r}): width={width} must be at least 1.", code="value.bad_policy")
    scope, n, entry, inner = open_place(name, "map")
    todo = list(items)
    if entry is None:
        # Recorded so that the progress of the run can be shown.
        scope.driver.ask(c.RecordValue(scope.prefix, name, n, "map", msgspec.Raw(b"%d" % len(todo))))
    else:
        inner.driver.compare_items(inner, entry, len(todo))
    results: list[Any] = [None] * len(todo)
    running: dict[ScopedTask, int] = {}
    following = 0
    failed: dict[str, ScopedTask] = {}
    finish = Finish()
    try:
        while (following < len(todo) or running) and not failed:
            while following < len(todo) and len(running) < width:
                task = branch(inner, f"~{following}", fn(todo[following]))
                finish.add(task)
                running[task] = following
                following += 1
            task = await finish.next()
            index = running.pop(task)
            error = error_of(task)
            if error is not None and not isinstance(error, Exception):
                raise error
            if error is not None and not raising and is_for_the_run(error):
                raise error
            if error is not None and raising:
                failed[f"~{index}"] = task
            else:
                results[index] = task.result() if raising else _outcome(task, error)
    finally:
        await _end(running)
    if failed:
        _raise_failures(name, failed, len(todo))
    return results


def _outcome(task: asyncio.Future[Any], error: BaseException | None) -> Ok[Any] | Err:
    return Ok(task.result()) if error is None else err_of(error)


def err_of(error: BaseException) -> Err:
    """Return a failure as a value."""
    return Err(recorded(error) or failure_of(error))


def is_for_the_run(error: BaseException) -> bool:
    """Check whether an error concerns the run and not only the call: wrong code, or `weft.Rollback`."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(Rollback) is not None
    return isinstance(error, UsageError | Rollback)


async def loop(name: str, body: Callable[[Any], Awaitable[Any]], state: Any, keep: int) -> Any:
    """Run rounds of ``body`` until it is done.

    The state of each round is recorded; a restart goes on with the current one.
    """
    if keep < 0:
        raise BadValue(f"loop({name!r}): keep={keep} must be 0 or more.", code="value.bad_policy")
    scope, n, entry, inner = open_place(name, "loop")
    driver = scope.driver
    state_codec, result_codec = _codecs(body, state)
    if entry is not None and entry.status == "done":
        await driver.outcome(entry)
        return driver.read(result_codec, await driver.value(entry.output), entry)
    number = 0
    if entry is not None:
        number = entry.round
        for earlier in range(max(0, number - keep), number):
            driver.pass_over(f"{inner.prefix}~{earlier}/")
        state = driver.read(state_codec, await driver.value(entry.output), entry)
    while True:
        driver.begin_round()
        turn = await branch(inner, f"~{number}", _round(body, state))
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
                hint="Return weft.again(state) to go on, or weft.done(value) to leave.",
            )
        if driver.tell_cancel():
            # Between two rounds, live and on replay: a round that waits for nothing gives no other chance.
            await asyncio.sleep(0)
        number += 1
        inner.counts.pop(f"~{number - keep - 2}", None)  # its entries have left the state
        raw = state_codec.encode(turn.state, what=f"{name} goes on with")
        driver.outside.issue(c.TurnLoop(scope.prefix, name, n, number, driver.outside.keep(raw), keep))
        state = state_codec.read(raw)


async def _round(body: Callable[[Any], Awaitable[Any]], state: Any) -> Any:
    return await body(state)


def _codecs(body: Callable[..., Any], state: Any) -> tuple[Codec[Any], Codec[Any]]:
    """Return the codecs of a loop's state and result: as the body is annotated, else of the state, and plain JSON."""
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
    return Codec.of(_plain_type(state_type)), Codec.of(result_type)


def _plain_type(type_: Any) -> Any:
    return Any if isinstance(type_, typing.TypeVar) else type_
