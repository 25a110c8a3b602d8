"""Decide the whole log of a fork, from the committed log of its original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.ids import EntryId, Epoch, Millis, RunId, RunUid, Seq, child_uid
from weft.core.machine import Machine
from weft.core.run import fork
from weft.core.run.covers import limit_moves
from weft.core.run.env import Env
from weft.core.run.state import Child
from weft.core.run.withheld import WOULD_PERFORM
from weft.core.schedule.calendar import ATTRIBUTE
from weft.core.trace_context import TraceParent, run_span, trace_of
from weft.errors import Corrupt, NotFound, Refused, UsageError
from weft.ports.new_run import NewRun
from weft.ports.store import Append, RunRow, StoredEvent
from weft.runtime.code_patches import named_version
from weft.runtime.fork_order import ForkOrder
from weft.runtime.fork_patches import decide_fork_patch, patch_command, patch_of
from weft.runtime.fork_places import check_approved, check_results, hint_at_code, steps_ahead
from weft.runtime.fork_points import LogTrail, Visit
from weft.runtime.offered_versions import check_offered_input, is_offered
from weft.runtime.patches import PatchService
from weft.runtime.programs import InputRules, has_dead_letters, input_rules
from weft.runtime.run.append_extras import ASKING, DEAD_LETTERS, FORKED_FROM, version_marks
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService

_RESULTS_PER_EVENT = 200
_RESULT_BYTES_PER_EVENT = 256 * 1024
_START = (e.GoalPlanned,)
"""Events that belong to the start of a run, which a fork from the beginning keeps."""


class ForkIdentity(msgspec.Struct, frozen=True):
    """The uid and the full id of a new fork, and who makes it. With ``is_dry``, no blob is written or touched."""

    uid: RunUid
    id: RunId
    by: str = ""
    is_dry: bool = False


class ForkLog:
    """The log of one fork that is being made."""

    def __init__(self, service: RunService, row: RunRow, order: ForkOrder, new: ForkIdentity) -> None:
        self._service = service
        self._row = row
        self._order = order
        self._uid = new.uid
        self._id = new.id
        self._by = new.by
        self._is_dry = new.is_dry
        self._held: dict[str, bytes] = {}
        """Large values of a dry fork, by digest."""
        self._events: list[StoredEvent] = []
        self._starts: dict[int, c.StartRun] = {}
        self._now = service.clock.now_ms()

    async def append(self) -> tuple[Append, int]:
        """Decide the whole new run. Returns it, and the number of the last event that both share."""
        stored = [event async for event in self._service.reader.events(self._row)]
        reader = self._service.reader
        trail = LogTrail(self._row.id, await reader.empty_machine(self._row, self._row.uid, stored), stored)
        point = _with_budget(stored, _find_fork_point(self._order, trail, stored))
        machine = await reader.empty_machine(self._row, self._uid, stored)
        self._copy_past(machine, stored[:point])
        self._end_past(machine, trail, point)
        self._route_ahead(machine, stored[point:])
        await self._record_edits(machine, trail.steps())
        await check_approved(self._service, self._row, machine, self._order, trail.steps())
        refs = await self._kept_blobs()
        state = machine.state
        children = self._new_children(machine) if not state.over else []
        create = NewRun(
            uid=self._uid,
            id=self._id,
            workflow=self._row.workflow,
            version=machine.state.version,
            style=self._row.style,
            created_at=self._now,
            attributes=self._fork_attributes(machine),
            wake_at=None if state.over else self._now,
            format=self._row.format,
        )
        append = Append(
            uid=self._uid,
            epoch=Epoch(0),
            seq=Seq(0),
            events=self._events,
            create=create,
            status=state.status,
            refs=refs,
            children=children,
            ledger=limit_moves(state),
        )
        return append, point

    # --- the common past ------------------------------------------------------------------------------------------

    def _copy_past(self, machine: Machine, past: Sequence[StoredEvent]) -> None:
        """Fold the past under the new uid, and collect how its children were started."""
        for one in past[:-1]:
            self._apply_event(machine, one)
        last = past[-1]
        rest: Sequence[e.AnyEvent] = ()
        if len(past) > 1:
            rest = fork.finish_decision(machine, e.decode(last.body), self._make_env())
        self._apply_event(machine, last)
        self._now = Millis(max(self._now, last.at))
        self._record_events(machine, rest)
        self._record_events(machine, fork.finish_waits(machine))

    def _apply_event(self, machine: Machine, one: StoredEvent) -> None:
        event = e.decode(one.body)
        if isinstance(event, e.RunStarted):
            event = self._first_event(event, one.at)
            one = StoredEvent(one.seq, one.at, e.encode(event))
        machine.evolve(event, at=one.at)
        self._events.append(one)
        self._note_start(machine, event)

    def _note_start(self, machine: Machine, event: e.AnyEvent) -> None:
        if isinstance(event, e.ChildStarted):
            for letter in machine.mail(event):
                if isinstance(letter.command, c.StartRun):
                    self._starts[machine.state.seq] = letter.command

    def _first_event(self, event: e.RunStarted, at: int) -> e.RunStarted:
        """Return the first event of the fork. It has no parent, schedule or trace, and its deadline begins anew."""
        uid, trace = self._row.uid, ""
        if event.trace or event.root:
            trace = str(TraceParent(trace_of(uid, event.root, event.trace), run_span(uid)))
        point = e.ForkedFrom(run=self._service.stored_id(self._row.id), uid=uid, seq=0, trace=trace)
        return msgspec.structs.replace(
            event,
            run_id=self._id,
            parent=None,
            root="",
            trace="",
            schedule="",
            due=self._now + event.due - at if event.due else 0,
            attributes={name: value for name, value in event.attributes.items() if name != ATTRIBUTE},
            forked_from=point,
        )

    def _end_past(self, machine: Machine, trail: LogTrail, point: int) -> None:
        """Record what ends the common past: known results, ``run_forked``, and the ends of children."""
        first = e.decode(self._events[0].body)
        assert isinstance(first, e.RunStarted)
        assert first.forked_from is not None
        origin = msgspec.structs.replace(first.forked_from, seq=point)
        body = e.encode(msgspec.structs.replace(first, forked_from=origin))
        self._events[0] = StoredEvent(self._events[0].seq, self._events[0].at, body)
        machine.state.forked_from = origin
        for results in _split_results(trail.results(point, self._order.effects)):
            self._record_events(machine, (e.ResultsKnown(results=results),))
        self._leave_undone(machine, trail.rolled_back(point))
        ends = self._known_ends(machine, trail)
        self._refuse_children(machine, ends)
        restarted = [
            e.RestartedChild(number, child_uid(self._uid, number), self._child_id(child))
            for number, child in machine.state.children.items()
            if not child.cancelled and number not in ends
        ]
        order = self._order
        self._record_events(
            machine,
            (
                e.RunForked(
                    effects=order.effects,
                    children=restarted,
                    yes=list(order.approved),
                    by=self._by,
                    reason=order.reason,
                ),
            ),
        )
        self._record_events(machine, fork.children_that_ended(machine.state))
        for end in ends.values():
            self._record_events(machine, machine.decide(_child_report(end), self._make_env()))

    def _leave_undone(self, machine: Machine, undone: Sequence[Visit]) -> None:
        """Drop work that the original has undone after the point, and all that began after it. Raises Refused.

        Only code asks for it again. A fork without effects keeps it, because it performs nothing that builds on it.
        """
        if not undone or machine.state.ended or self._order.effects == "none":
            return
        if not machine.style.has_code:
            places = list(dict.fromkeys(visit.place.partition("/")[0] for visit in undone))
            raise Refused(
                f"{self._row.id} has undone {', '.join(places)} after this point, so a fork cannot go on from there.",
                hint=f"Fork before the first of them: --before {places[0]}",
                code="fork.undone",
            )
        first = min(visit.began for visit in undone)
        self._record_events(machine, machine.decide(c.DropEntries(EntryId(first)), self._make_env()))

    def _known_ends(self, machine: Machine, trail: LogTrail) -> dict[int, e.ChildEnded]:
        """Return the ends that the open children had in the original, if the fork uses results of it."""
        if self._order.effects == "perform" or machine.state.over:
            return {}
        open_children = machine.state.children
        return {
            n: trail.child_ends[n] for n in open_children if n in trail.child_ends and not open_children[n].cancelled
        }

    def _refuse_children(self, machine: Machine, ends: dict[int, e.ChildEnded]) -> None:
        """Refuse a fork without effects at a point at which a child is open that has no end yet. Raises Refused."""
        started = [
            child.run_id
            for number, child in machine.state.children.items()
            if not child.cancelled and number not in ends and not machine.state.over
        ]
        if self._order.effects == "none" and started:
            raise Refused(
                f"At this point {', '.join(started)} is open, and a fork without effects cannot begin it anew.",
                hint="Choose another point.",
                code=WOULD_PERFORM,
            )

    def _child_id(self, child: Child) -> str:
        """Return the id for a child that begins again: like that of the original's child, but below the fork."""
        own = f"{self._service.stored_id(self._row.id)}."
        if child.run_id.startswith(own):
            return f"{self._id}.{child.run_id.removeprefix(own)}"
        return f"{child.run_id}~{self._uid[-6:]}"

    def _new_children(self, machine: Machine) -> list[NewRun]:
        found = []
        for number, child in machine.state.children.items():
            start = msgspec.structs.replace(self._starts[number], run_id=child.run_id)
            found.append(
                NewRun(
                    uid=RunUid(child.uid),
                    id=RunId(child.run_id),
                    workflow=start.workflow,
                    version=start.version,
                    style=start.style,
                    created_at=self._now,
                    parent=self._uid if start.parent is not None else None,
                    start=c.encode(start),
                    attributes=start.attributes,
                )
            )
        return found

    # --- edits ----------------------------------------------------------------------------------------------------

    def _route_ahead(self, machine: Machine, rest: Sequence[StoredEvent]) -> None:
        """Record the writes that come with the begin of a graph node, if the fork changes the state before the node.

        The event that begins a node also has what the node before it saves, which must not overwrite the edit.
        """
        event = e.decode(rest[0].body) if self._order.before and rest else None
        if isinstance(event, e.NodeRouted) and any(one.path[0] in self._order.state for one in event.writes):
            self._record_events(machine, (msgspec.structs.replace(event, task=None),))

    async def _record_edits(self, machine: Machine, steps: list[str]) -> None:
        """Record the edits, if there are any, and the patch. ``steps``: the places at which the original has steps.

        Raises Refused, PatchRefused, BadValue, UsageError.
        """
        order = self._order
        if not any((order.input, order.set, order.state, order.given, order.to)):
            return
        if machine.state.over:
            raise Refused(
                f"{self._row.id} is {machine.state.status} at this point, so there is nothing to edit.",
                hint="Choose an earlier point: --before, --after, --failure or --at.",
                code="fork.bad_edit",
            )
        patch = patch_of(order, self._row, machine)
        edited = msgspec.structs.replace(
            order, to="" if patch else order.to, given={} if "given" in patch else order.given
        )
        if any((edited.input, edited.set, edited.state, edited.given, edited.to)):
            edits = await self._edit_command(machine, edited)
            more = await steps_ahead(self._service, self._row, edits) if machine.style.has_code else []
            with hint_at_code(self._service, more):
                events = machine.decide(msgspec.structs.replace(edits, steps=steps, more=more), self._make_env())
            check_results(self._service, machine, order)
            self._record_events(machine, events)
        if patch:
            row = msgspec.structs.replace(self._row, id=self._id, version=machine.state.version)
            command = patch_command(patch, order, self._by)
            self._record_events(machine, await decide_fork_patch(self._service, row, machine, self._events, command))

    async def _edit_command(self, machine: Machine, order: ForkOrder) -> c.EditRun:
        version = await self._resolve_version(order.to) if order.to else ""
        rules = self._input_rules(machine, version)
        changed = await self._changed_arguments(machine, order, rules)
        if rules.has_facts:
            changed |= order.given
        return c.EditRun(
            input=await self._edited_input(machine, changed, rules) if changed else e.ABSENT,
            results=await self._keep_all(order.set, "a result has"),
            state=await self._keep_all(order.state, "the state has"),
            given=await self._keep_all(changed if rules.has_facts else order.given, "a fact has"),
            version=version,
            ahead=order.before,
            by=self._by,
        )

    async def _resolve_version(self, name: str) -> str:
        """Return the version of the code with this name or tag. Raises Refused if no host has it."""
        version = await named_version(PatchService(self._service), self._row, name)
        if not await is_offered(self._service, self._row.workflow, version):
            hint = f"Deploy it first. To see what is hosted: weft workflows {self._row.workflow}"
            raise fork.bad_edit([f"no host has {self._row.workflow} in version {version[:60]}"], hint=hint)
        return version

    def _input_rules(self, machine: Machine, version: str) -> InputRules:
        code = self._service.known_code
        program = code.program(self._row.workflow, version or machine.state.version) if code is not None else None
        return input_rules(machine, program)

    async def _changed_arguments(self, machine: Machine, order: ForkOrder, rules: InputRules) -> dict[str, Any]:
        """Return the arguments that change, with typed words read. Raises BadValue if no host takes one of them."""
        if machine.style.has_code and rules.check is None:
            await check_offered_input(self._service, self._row.workflow, order.input, order.words)
        words = {name for name in order.words if isinstance(order.input.get(name), str)}
        return {name: rules.read(name, each) if name in words else each for name, each in order.input.items()}

    async def _edited_input(self, machine: Machine, changed: Mapping[str, Any], rules: InputRules) -> Raw:
        """Return the whole input. Raises BadValue, as a start does, if the workflow does not take it."""
        there = values.decode(await self._service.values.load(bytes(machine.state.input)))
        if not isinstance(there, dict | None):
            raise UsageError(f"The input of {self._row.id} has no names, so it cannot be changed by name.")
        whole = {**(there or {}), **changed}
        if rules.check is not None:
            rules.check(whole)
        return await self._keep_value(values.encode(whole, what="the input has"))

    async def _keep_all(self, given: Mapping[str, Any], what: str) -> dict[str, Raw]:
        return {name: await self._keep_value(values.encode(value, what=what)) for name, value in given.items()}

    async def _keep_value(self, raw: bytes) -> Raw:
        if not self._is_dry:
            return Raw(await self._service.values.keep(raw))
        sealed = values.seal_inline(raw)
        if sealed is None:
            digest, sealed = self._service.values.hold(raw)
            self._held[digest] = raw
        return Raw(sealed)

    # --- what is written --------------------------------------------------------------------------------------------

    def _record_events(self, machine: Machine, events: Sequence[e.AnyEvent]) -> None:
        for event in events:
            machine.evolve(event, at=self._now)
            self._events.append(StoredEvent(Seq(machine.state.seq), self._now, e.encode(event)))
            self._note_start(machine, event)

    def _make_env(self) -> Env:
        return Env(now=self._now, check=check_schema)

    async def _kept_blobs(self) -> list[str]:
        """Return the blobs that the fork refers to, and those inside them. Raises Refused if some are gone.

        They are touched, so that none is deleted meanwhile.
        """
        waiting = list(dict.fromkeys(digest for one in self._events for digest in values.blobs_in(one.body)))
        found = dict.fromkeys(waiting)
        blobs = self._service.store.blobs
        missing = []
        while waiting:
            digest = waiting.pop()
            try:
                data = self._held.get(digest) or await blobs.get(digest)
                if not self._is_dry:
                    await blobs.put(data)
            except (NotFound, Corrupt):
                missing.append(digest)
                continue
            inner = [one for one in values.blobs_in(data) if one not in found]
            found.update(dict.fromkeys(inner))
            waiting += inner
        if missing:
            raise Refused(
                f"{self._row.id} cannot be forked: {len(missing)} of the values in its log are gone: "
                f"{', '.join(digest[:12] for digest in missing[:5])}.",
                hint="Fork from an earlier point.",
                code="fork.values_gone",
            )
        return list(found)

    def _fork_attributes(self, machine: Machine) -> dict[str, Any]:
        state = machine.state
        marks: dict[str, Any] = {FORKED_FROM: self._row.uid}
        if state.asks:
            marks[ASKING] = True
        if has_dead_letters(machine):
            marks[DEAD_LETTERS] = True
        return {**state.attributes, **marks, **version_marks(machine)}


def _with_budget(stored: Sequence[StoredEvent], point: int) -> int:
    """Return the point after the budget, if the next event sets it: a fork has the budget of its original."""
    is_next = 0 < point < len(stored) and isinstance(e.decode(stored[point].body), e.BudgetSet)
    return point + 1 if is_next else point


def _find_fork_point(order: ForkOrder, trail: LogTrail, stored: Sequence[StoredEvent]) -> int:
    """Return the number of the last event that the fork shares. Raises NotFound, Refused."""
    if order.before:
        point = trail.before(order.before, order.visit)
    elif order.after:
        point = trail.after(order.after, order.visit)
    elif order.failure:
        point = trail.before_failure()
    else:
        point = 1 if order.at is None else order.at
    if not 1 <= point <= len(stored):
        raise Refused(
            f"{trail.run_id} has the events 1 to {len(stored)}, so it cannot be forked at {point}.",
            code="fork.no_point",
        )
    while point < len(stored) and isinstance(e.decode(stored[point].body), _START):
        point += 1
    return point


def _split_results(results: Sequence[e.KnownResult]) -> list[list[e.KnownResult]]:
    """Split results so that no event is too large."""
    parts: list[list[e.KnownResult]] = []
    size = 0
    for result in results:
        if not parts or len(parts[-1]) >= _RESULTS_PER_EVENT or size > _RESULT_BYTES_PER_EVENT:
            parts.append([])
            size = 0
        parts[-1].append(result)
        size += len(bytes(result.output))
    return parts


def _child_report(end: e.ChildEnded) -> c.ReportChildEnded:
    return c.ReportChildEnded(child=end.child, status=end.status, output=end.output, failure=end.failure)
