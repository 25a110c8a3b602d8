"""Run the code of one run. It gets facts in the order of the log, and its requests become commands.

The same happens live and on replay: the next fact is delivered, the private loop is pumped until nothing is ready, and
each request is looked up by its location. A recorded request is answered when its fact is next. A new request becomes a
command, decided and recorded at once. So replay needs no mode of its own, and writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeVar

from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.budgets import BudgetLimits
from weft.core.code.locations import location_key
from weft.core.code.machine import CodeMachine
from weft.core.code.state import Entry, has_unchecked_input
from weft.core.events import Policy
from weft.core.ids import CANCEL, EntryId
from weft.core.plurals import with_article
from weft.core.run import lifecycle
from weft.errors import BadValue, Diverged, Evicted, Failure, ForeignAwait, LimitExceeded, WeftError
from weft.runtime.run.divergence import divergence_error, is_droppable, map_item, misfit_error, other_parameters
from weft.runtime.run.driver_actor import DriverActor
from weft.runtime.run.inline import InlineBody
from weft.runtime.run.private_loop import PrivateLoop, error_of_task, foreign_await, is_foreign, make_loop
from weft.runtime.run.scopes import CURRENT, NameScope
from weft.runtime.run.unreached import NEW_WORK, Missed, Unreached
from weft.steps.codec import Codec
from weft.steps.failures import failure_of_run, text_of
from weft.steps.misfits import Misfit

log = logging.getLogger("weft")
T = TypeVar("T")

VISITED_MIN = 64
REPLAYED_PER_LOOK = 64  # steps of a replay between two looks at the clock


class Program(Protocol):
    """A code workflow, as its author registered it."""

    name: str
    version: str
    review: tuple[str, ...]
    """Who must agree to every patch of a run."""
    budget: BudgetLimits | None

    def read(self, name: str, text: str) -> Any:
        """Convert a word that was typed for a parameter, by the parameter's type."""

    def check(self, given: Mapping[str, Any] | bytes) -> bytes:
        """Return the input of a new run as JSON. Bytes were checked by a call's signature. Raises BadValue."""

    def defaults(self, given: bytes | None) -> bytes:
        """Return the defaults of the parameters that this input (None if unknown) omits, as JSON, or nothing."""

    def texts(self) -> Iterable[str] | None:
        """Return the texts in the code, among which are the names of its inline steps; None if any may be one."""

    def begin(self, driver: CodeDriver, given: bytes, defaults: bytes) -> Coroutine[Any, Any, Any]:
        """Call the function with its recorded arguments."""

    def encode(self, value: Any) -> bytes:
        """Encode the result as JSON. Raises BadValue."""
        ...

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Any:
        """Return the invocation for a child call, or for a workflow with its input."""
        ...

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Return the invocation for a run of unnamed goals."""
        ...

    def service(self) -> Any:
        """Return the service for other runs."""
        ...


class CodeDriver:
    """Runs the code of one run on its private loop."""

    def __init__(self, machine: CodeMachine, program: Program, outside: DriverActor) -> None:
        self.machine = machine
        self.program = program
        self.outside = outside
        self.loop: PrivateLoop = make_loop()
        self.loop.workflow = program.name
        self.evicted = False
        self.unfinished = False
        """Whether the code has more to do now, in its next slice."""
        self.missing_blobs: set[str] = set()
        """Digests of blobs that must be in memory before the next fact can be delivered."""
        self.bodies: dict[int, InlineBody] = {}
        """Open inline steps: their bodies exist only here."""
        self._facts = machine.state.facts
        self._cursor = 0
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._fetching: asyncio.Future[None] | None = None
        self._passed: set[int] = set()
        self._visited: set[int] = set()
        self._main: asyncio.Task[Any] | None = None
        self._stop: WeftError | None = None
        self._other_input: tuple[EntryId, bytes] | None = None
        """The location where the code's arguments differ from the recorded ones, and the new arguments."""
        self._unfit: EntryId | None = None
        """The first entry of a fork's common past that the code no longer asks for."""
        self._finished = False
        self._is_cancel_late = False
        """A cancellation has waited for a whole slice, and the code is still busy."""
        self._has_replayed = False
        """Whether the code reached a recorded entry in this slice."""
        self._unreached = Unreached(machine.state, self._visited)

    # --- driving --------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Deliver all new facts to the code, one at a time, and record its requests."""
        self.unfinished = self._has_replayed = False
        if self._finished or self.evicted:
            return
        if self._main is None and not self._begin_code():
            return
        if self._fetching is not None and not self.missing_blobs:
            self._on_blob_fetched()
        self.loop.begin_slice()
        try:
            self._run_until_waiting()
        except LimitExceeded as error:
            # Deliver a waiting cancellation first: the code may never wait, and the cancellation may end it.
            if not self.tell_cancel():
                self._stop = self._stop or error
            self.loop.unfinished = True
        if self._stop is not None:
            self._hold_run(self._stop)
        elif self.loop.stray is not None:
            self._finish_code(self.loop.stray)
        elif self._main is not None and self._main.done():
            self._on_function_ended(self._main)
        elif self.loop.unfinished:
            self.unfinished = True
            # Facts are delivered when nothing is ready. A cancellation waits for that at most a whole slice; but during
            # replay it is delivered at the same point as before.
            is_next = self._is_cancel_next() and not self._has_replayed
            self._is_cancel_late = is_next and not (self._is_cancel_late and self.tell_cancel())
        elif not self.machine.state.tasks and not self.missing_blobs and not self._is_anything_open():
            self._hold_run(self.loop.foreign or foreign_await(self.machine.state.workflow, self._main))

    def _begin_code(self) -> bool:
        state = self.machine.state
        given = self.peek(state.input)
        defaults = self.peek(state.defaults) if bytes(state.defaults) else b""
        if given is None or defaults is None:
            return False
        try:
            code = self.program.begin(self, given, defaults)
        except BadValue as misfit:
            if self.outside.is_new() or has_unchecked_input(state):
                # The caller that started or forked the run did not know the function, so the input was not checked.
                self._finished = True
                refused = BadValue(misfit.message, code=misfit.code)
                self.outside.issue(c.FailRun(lifecycle.mark_never_began(failure_of_run(refused), state.run_id)))
                return False
            # The recorded input was valid when it was recorded, so the function must have changed.
            self._hold_run(other_parameters(state, misfit))
            return False
        self._main = self.loop.spawn(code, NameScope(self, ""))
        return True

    def _run_until_waiting(self) -> None:
        """Let the code run until it waits for a fact that has not happened yet."""
        loop, state, main = self.loop, self.machine.state, self._main
        assert main is not None
        while True:
            if loop.ready:
                loop.pump()
            facts = state.facts if state.facts is self._facts else self._facts_now()
            if self._cursor >= len(facts):
                return
            if loop.unfinished or self._stop is not None or main.done() or loop.frozen or loop.stray is not None:
                return
            fact = facts[self._cursor]
            if fact == CANCEL:
                main.cancel()
            else:
                entry = state.entries.get(fact)
                may_refer = entry is not None and len(entry.output) > values.REF_BYTES_MIN
                if entry is not None and may_refer and self.peek(entry.output) is None:
                    return
                future = self._waiting.pop(fact, None)
                if future is None:
                    self._passed.add(fact)
                elif not future.done():
                    future.set_result(None)
            self._cursor += 1
            loop.has_asked = True

    def _is_cancel_next(self) -> bool:
        facts = self._facts_now()
        return self._cursor < len(facts) and facts[self._cursor] == CANCEL

    def tell_cancel(self) -> bool:
        """Cancel the code if that is its next fact, even if something is ready. Returns whether it was."""
        if self._main is None or not self._is_cancel_next():
            return False
        self._main.cancel()
        self._cursor += 1
        self.loop.has_asked = True
        return True

    def _on_blob_fetched(self) -> None:
        """Continue after a blob that the code waited for was fetched."""
        assert self._fetching is not None
        waiter, self._fetching = self._fetching, None
        self.loop.thaw(waiter)

    def _facts_now(self) -> list[int]:
        """Return the facts, after adjusting the cursor if the list was thinned since."""
        facts = self.machine.state.facts
        if facts is not self._facts:
            told = 0
            # The remaining facts that were already delivered are at the head of the new list; new ones follow them.
            for fact in self._facts[: self._cursor]:
                if told < len(facts) and facts[told] == fact:
                    told += 1
            self._cursor = told
            self._facts = facts
        return facts

    def begin_round(self) -> None:
        """Begin a round of a loop: forget entries of rounds that are no longer in the state."""
        entries = self.machine.state.entries
        for known in (self._visited, self._passed):
            if len(known) > 2 * len(entries) + VISITED_MIN:
                known.intersection_update(entries)

    def _is_anything_open(self) -> bool:
        """Return whether something is open that may end."""
        state = self.machine.state
        return bool(state.tasks or state.timers or state.waits or state.asks or state.children)

    def _on_function_ended(self, main: asyncio.Task[Any]) -> None:
        """Handle the end of the function, which has returned or raised."""
        error = error_of_task(main)
        output = b"null"
        if error is None:
            try:
                output = self.program.encode(main.result())
            except WeftError as wrong:
                error = wrong
        self._finish_code(error, output)

    def _finish_code(self, error: BaseException | None, output: bytes = b"null") -> None:
        self._finished = True
        state = self.machine.state
        self._report_unreached()
        self.close()
        if isinstance(error, ForeignAwait) or (self.loop.foreign is not None and is_foreign(error)):
            self._hold_run(self.loop.foreign or foreign_await(state.workflow, None))
        elif state.cancelled is not None:
            self.outside.issue(c.EndCancelled())
        elif state.timed_out:
            message = f"{state.run_id} did not end before its deadline"
            self.outside.issue(c.FailRun(Failure(type="TimedOut", message=message, code="run.timed_out")))
        elif error is None:
            self.outside.issue(c.CompleteRun(self.outside.keep(output)))
        elif is_foreign(error):
            self._hold_run(foreign_await(state.workflow, None, f" ({text_of(error)})"))
        else:
            self.outside.issue(c.FailRun(failure_of_run(error)))

    def _report_unreached(self) -> None:
        """Log the recorded entries that the code did not come to."""
        if self._unreached.entries:
            self._unreached.report(self.machine.state)

    def _hold_run(self, error: WeftError) -> None:
        self._finished = True
        location = error.location if isinstance(error, Diverged) else ""
        self.close()
        if self._unfit is not None:
            self.outside.drop_from(self._unfit)
        elif self._other_input is not None:
            entry, asked = self._other_input
            self.outside.hold_other_input(location, entry, asked, map_item(self.machine, location))
        else:
            self.outside.issue(c.HoldRun(error.code, str(error), location))

    def close(self) -> None:
        """End the code: throw ``weft.Evicted`` into it, and ignore its reaction."""
        if self.evicted:
            return
        self.evicted = True
        self.loop.end_all(Evicted)
        # A pending future and its task refer to each other. Break the cycle, so that both are freed at once.
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()
        self.loop.ready.clear()
        self._main = None
        self.bodies.clear()

    # --- requests ---------------------------------------------------------------------------------------------------

    def find(
        self, scope: CodeScope, name: str, kind: str, digest: str = "", given: bytes = b""
    ) -> tuple[int, Entry | None]:
        """Return the number of the next use of a name, and the entry recorded there. ``given`` are the arguments.

        Holds the run if this is new work and replay has missed a recorded step that acted.
        """
        n, entry = self.recorded(scope, name, kind, digest, given)
        if entry is None and self._unreached.entries and kind in NEW_WORK:
            missed = self._unreached.missed(scope, self.machine.state)
            if missed is not None:
                self._hold_for_missed(missed, location_key(scope.prefix, name, n), kind)
        return n, entry

    def find_step(self, scope: CodeScope, name: str, digest: str, given: bytes) -> tuple[int, Entry | None]:
        """Find the entry of a step, like ``find``. The number 0 means that the code may know the outcome at once.

        On replay a call is nearly always the next fact, and live it is nearly always new. Both are seen here.
        """
        counts, kinds, loop = scope.counts, scope.kinds, self.loop
        if self.evicted or self._stop is not None or kinds.get(name, "step") != "step":
            return self.find(scope, name, "step", digest, given)
        n = counts.get(name, 0) + 1
        key = f"{scope.prefix}{name}#{n}" if n > 1 else scope.prefix + name  # key_of: a call for every step
        facts, state, cursor = self._facts, self.machine.state, self._cursor
        entry: Entry | None = None
        if cursor < len(facts) and facts is state.facts and not loop.ready:
            number, visited = facts[cursor], self._visited
            entry = state.entries.get(number)
            if (
                entry is None
                or entry.key != key
                or entry.digest != digest
                or entry.kind != "step"
                or number in visited
                or loop.unfinished
                or (not cursor % REPLAYED_PER_LOOK and loop.is_over_time_after(REPLAYED_PER_LOOK))
                or bytes(entry.output).startswith(values.MARKED)
            ):
                return self.find(scope, name, "step", digest, given)
            self._cursor, self._has_replayed = cursor + 1, True
            visited.add(number)
            if self._unreached.found:
                self._unreached.forget(number)
        elif (found := self._unreached.found) is None or found or self.machine.style.index.find(key) is not None:
            return self.find(scope, name, "step", digest, given)
        counts[name], kinds[name] = n, "step"
        loop.has_asked = True
        return (n if entry is None else 0), entry

    def _hold_for_missed(self, missed: Missed, asked: str, kind: str) -> None:
        error = missed.error(self.machine.state.run_id, asked, kind)
        self._drop_in_fork(missed.entry, error)
        if not self.outside.tolerant:
            self.stop(error)
        log.warning("weft: %s", error.message)
        self._unreached.forget(missed.entry.id)

    def recorded(
        self, scope: CodeScope, name: str, kind: str, digest: str = "", given: bytes = b""
    ) -> tuple[int, Entry | None]:
        """Find an entry, like ``find``, for code that will not ask for new work here."""
        if self.evicted or self._stop is not None:
            return 1, self._endless_entry(location_key(scope.prefix, name, 1), kind)
        self.loop.has_asked = True
        n = scope.count(name, kind)
        entry = self.machine.style.index.find(location_key(scope.prefix, name, n))
        if entry is None:
            return n, None
        if entry.kind != kind:
            self.diverge(entry, with_article(entry.kind), with_article(kind))
        if digest and (entry.digest != digest or entry.id in self._visited):
            entry = self._same_input(scope, name, entry, digest, given)
            if entry is None:
                return n, None
        self._has_replayed = True
        self._visited.add(entry.id)
        self._unreached.forget(entry.id)
        return n, entry

    def _endless_entry(self, key: str, kind: str) -> Entry:
        """Raise Evicted in code that ends. Code that swallows it again and again gets an entry that never ends.

        Then it waits, so that the host can go on without it.
        """
        self.loop.swallowed += 1
        if not self.loop.ignores_end():
            raise Evicted
        return Entry(id=EntryId(-self.loop.swallowed), key=key, kind=kind)

    def mark_reached(self, prefix: str) -> None:
        """Mark all entries below a location as reached: replay continues after them."""
        for number in self.machine.index.below(prefix):
            self._visited.add(number)
            self._unreached.forget(number)

    def _same_input(self, scope: CodeScope, name: str, entry: Entry, digest: str, given: bytes) -> Entry | None:
        """Return the entry for this input: calls with the same name may have been reordered.

        An unvisited entry with exactly this input is used. None if the entry is an irreversible step whose result a
        retry kept: then the step is asked for again.
        """
        n = 1
        while (other := self.machine.lookup(location_key(scope.prefix, name, n))) is not None:
            if other.digest == digest and other.id not in self._visited:
                return other
            n += 1
        if entry.id not in self._visited and entry.key in self.machine.state.earlier:
            return None
        if not self.outside.tolerant or entry.id in self._visited:
            self._other_input = (entry.id, given)
            self.diverge(entry, "a result for other arguments", "")
        log.warning(
            "weft: %s: %s has a recorded result for other arguments; it is used", self.machine.state.run_id, entry.key
        )
        return entry

    def compare_items(self, inner: CodeScope, entry: Entry, items: int) -> None:
        """Compare the number of items in a map. It may change, unless an entry has acted in an item that is gone."""
        recorded = int(bytes(entry.output))
        if items == recorded or self.outside.tolerant:
            return
        if items > recorded:
            changed = self._unreached.missed(inner, self.machine.state) is not None
        else:
            changed = self._unreached.has_items(inner, items)
        if changed:
            self.diverge(entry, f"a map over {recorded} items", f"one over {items}")

    def diverge(self, entry: Entry, recorded: str, asked: str) -> None:
        """Hold the run for a person, because the code asks for something other than the log has."""
        self.stop(divergence_error(self.machine.state.run_id, entry.key, recorded, asked), entry)

    def stop(self, error: WeftError, entry: Entry | None = None) -> NoReturn:
        """Hold the run for a person. In a fork, an ``entry`` that does not fit may be dropped instead."""
        if entry is not None:
            self._drop_in_fork(entry, error)
        self._stop = error
        raise Evicted

    def _drop_in_fork(self, entry: Entry, error: WeftError) -> None:
        """Stop here to drop an entry that does not fit, if it is of the past that a fork shares with its original.

        Once work of the fork itself is durable, a difference is a divergence as in every run.
        """
        if is_droppable(self.machine.state, entry, self.outside.committed_seq):
            self._unfit = entry.id
            self.stop(error)

    def ask(self, command: c.Ask) -> Entry:
        """Record a new entry."""
        if self.loop.ignores_end():
            return self._endless_entry("", "")
        try:
            self.outside.issue(command)  # type: ignore[arg-type]
        except Evicted:
            self.loop.swallowed += 1
            raise
        entry = self.machine.entry(command)
        self._visited.add(entry.id)
        return entry

    def passed(self, scope: CodeScope, policy: Policy) -> tuple[str, ...]:
        """Return the places of dropped work that a new irreversible step may repeat, because its place was renamed."""
        state = self.machine.state
        if not state.earlier or policy.effect != "irreversible":
            return ()
        reached = {entry.key for number, entry in state.entries.items() if number in self._visited}
        return self._unreached.passed(scope, state, reached)

    def schedule(self, ask: c.ScheduleTask) -> Entry:
        """Record a new step."""
        entry = self.outside.try_schedule(ask)
        if entry is None:
            return self.ask(ask)
        self._visited.add(entry.id)
        return entry

    async def at_once(self, *, new: bool) -> None:
        """Wait if the slice is over, before a request is answered at once. ``new``: the request will be recorded now.

        Then a cancellation that is the next fact is delivered first, because code that never waits has no other moment.
        On replay it is delivered at the same point, because nothing is recorded there.
        """
        if self.loop.ignores_end():
            await self.loop.block_if_end_ignored()
        if new and asyncio.current_task() is self._main and self.tell_cancel():
            await asyncio.sleep(0)
        if self.loop.is_over_time():
            self._fetching = self.loop.create_future()
            await self.loop.frozen_until(self._fetching)

    def is_outcome_known(self, entry: Entry) -> bool:
        """Return whether the code may know the outcome of this entry without waiting.

        Its fact was delivered, or is next and nothing else is ready.
        """
        number = entry.id
        if number in self._passed:
            self._passed.discard(number)
            return True
        facts = self._facts_now()
        if self._cursor >= len(facts) or facts[self._cursor] != number or self.loop.ready:
            return False
        if self.peek(entry.output) is None or self.loop.is_over_time():
            return False
        self._cursor += 1
        return True

    async def outcome(self, entry: Entry) -> Entry:
        """Wait until the code may know the outcome of an entry."""
        if entry.status in ("done", "failed") and self.is_outcome_known(entry):
            return entry
        try:
            await self.future_of(entry)
        except asyncio.CancelledError:
            self.abandon(entry)
            raise
        return entry

    def future_of(self, entry: Entry) -> asyncio.Future[None]:
        """Return a future that is done when the code may know the outcome. If it is cancelled, call ``abandon``."""
        future: asyncio.Future[None] = asyncio.Future(loop=self.loop)
        self._waiting[entry.id] = future
        return future

    def abandon(self, entry: Entry) -> None:
        """Cancel an entry whose outcome the code no longer waits for."""
        self._waiting.pop(entry.id, None)
        if not self.evicted and entry.status == "open":
            self.outside.issue(c.CancelEntry(entry.id))

    async def value(self, raw: Raw) -> bytes:
        """Return the JSON of a recorded value.

        Nothing else happens in the run while a blob is fetched, so the order does not change.
        """
        while (found := self.peek(raw)) is None:
            self._fetching = self.loop.create_future()
            await self.loop.frozen_until(self._fetching)
        return found

    def read(self, codec: Codec[T], raw: bytes, entry: Entry) -> T:
        """Decode a recorded value. If it does not have the type of the codec, hold the run."""
        try:
            return codec.read(raw)
        except Misfit as misfit:
            self.refuse_type(entry, misfit)
            raise

    def refuse_type(self, entry: Entry, misfit: Misfit) -> None:
        """Hold the run for a person, because a recorded value does not have the type that the code gives it."""
        self.stop(misfit_error(self.machine.state.run_id, entry.key, misfit), entry)

    def peek(self, raw: Raw) -> bytes | None:
        """Return the JSON of a recorded value if it is in memory; otherwise it will be fetched."""
        sealed = bytes(raw)
        plain = values.inline_json(sealed)
        if plain is not None:
            return plain
        digest = values.parse_ref(sealed).digest
        found = self.outside.blob(digest)
        if found is None:
            self.missing_blobs.add(digest)
        return found

    def new_id(self) -> str:
        return self.outside.new_id()

    def unvisited(self, scope: CodeScope) -> bool:
        """Return whether the scope has recorded entries that the code has not reached (again)."""
        cut = len(scope.prefix)
        return any(
            entry.id not in self._visited
            and entry.key.startswith(scope.prefix)
            and not scope.has_entered(entry.key[cut:].partition("/")[0])
            for entry in self.machine.state.entries.values()
        )

    def settled(self) -> bool:
        """Return whether the code has ended or was held."""
        return self._finished


CodeScope = NameScope[CodeDriver]


def current_scope() -> CodeScope | None:
    """Return the scope of the workflow code that runs now, if any."""
    return CURRENT.get(None)
