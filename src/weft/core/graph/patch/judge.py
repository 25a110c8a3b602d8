"""Judge a patch of a graph run: what it does to the run as it stands, or why it is refused. Pure.

The patch is worked out on a copy of the state with the same code that applies its event. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core import values
from weft.core.commands import PatchRun
from weft.core.graph.edits import declared_fields, schema_errors, state_fields
from weft.core.graph.hosted import HostedGraph
from weft.core.graph.model import GraphModel
from weft.core.graph.patch.apply import PatchGame, path_steps, remembered_edges
from weft.core.graph.patch.check_here import check_here
from weft.core.graph.patch.form import GraphPatch, decode_patch, decode_report
from weft.core.graph.patch.going_back import WayBack, find_way_back
from weft.core.graph.patch.identity import GraphIdentity, identify, rename_remembered
from weft.core.graph.patch.instructions import Instructions
from weft.core.graph.patch.joins import JoinRules, LiveScope, PatchSide, find_reroute, live_paths
from weft.core.graph.patch.past import Fold, NodeVisit, Past, read_past
from weft.core.graph.patch.places import NewPlaces
from weft.core.graph.patch.reach import Reached, ScopeReach, nothing_reached
from weft.core.graph.patch.repeated import works_behind
from weft.core.graph.patch.static_scopes import StaticScopes
from weft.core.graph.tokens import AT_WORK, GraphState, Path, copy_graph_state, path_key
from weft.core.ids import derive
from weft.core.patch_events import FRAME
from weft.core.run.env import Env, MissingInputs, PastEvent
from weft.core.run.patch_plan import PatchPlan, PatchRefusal, PlanEntry
from weft.core.run.style import JudgedPatch

KEEPS = "its result is kept if its input is the same; else a person is asked before it is performed"
ASKS = "a person is asked before it is performed"
NOT_ARRIVED = (*AT_WORK, "queued")
"""The modes of tokens that have not arrived anywhere. Without an instruction, they go only if a join needs no more."""


def judge_graph_patch(program: HostedGraph, fold: Fold, state: GraphState, command: PatchRun, env: Env) -> JudgedPatch:
    """Return what a patch does. Raises MissingInputs if the log or a version is not in memory."""
    log = env.log()
    if log is None:
        raise MissingInputs(log=True)
    now = program.at(command.version or state.version)
    past = read_past(program, fold, state.uid, log)
    last = state.revisions[-1] if state.revisions else None
    straight = command.undoes > 0 and last is not None and last.seq == state.seq and not last.retried
    form = _patch_that_undoes(command, log, straight=straight) if command.undoes else decode_patch(bytes(command.patch))
    judged = GraphJudge(program, now, state, form, past, undoes=command.undoes, undoing=straight).judge()
    reasons = [*decode_report(bytes(command.prepared)).refusals, *_refused_fields(form.set, now.graph, env)]
    return _apply_time_limit(judged, reasons, state, (program.graph, now.graph), env.now)


def _refused_fields(given: Mapping[str, Any], graph: GraphModel, env: Env) -> Iterator[PatchRefusal]:
    """Yield what is wrong with the fields that a patch sets. A graph that declares no state has any field."""
    declared = declared_fields(graph)
    known = state_fields(graph) if declared else ()
    for name, value in given.items():
        field, _, below = name.removeprefix("state.").partition(".")
        path = f"set.{name[:60]}"
        if (known and field not in known) or (below and not name.startswith("state.")):
            hint = f"The fields of the state are {', '.join(sorted(known))}." if known else "Write state.FIELD."
            text = f"the state of {graph.name} has no field {name.removeprefix('state.')[:60]}"
            yield PatchRefusal("patch.unknown_field", text, path=path, hint=hint)
        elif not below:
            problems = schema_errors(declared, {field: Raw(msgspec.json.encode(value))}, env)
            for problem in problems.values():
                yield PatchRefusal("patch.wrong_type", f"state.{field[:60]}: {problem}", path=path)


def _patch_that_undoes(command: PatchRun, log: Sequence[PastEvent], *, straight: bool) -> GraphPatch:
    """Return the patch that goes back to the document before another one: what that renamed gets its name back.

    If it follows at once, the run comes back to where it stood, so that needs no check.
    """
    undone = next(one.event for one in log if isinstance(one.event, e.RunPatched) and one.event.rev == command.undoes)
    moved = any(one.do != "reroute" for one in undone.tokens)
    rename = {new: old for old, new in undone.nodes.items()}
    return GraphPatch(to=command.version, rename=rename, unchecked=straight and not moved)


def _apply_time_limit(
    judged: JudgedPatch,
    reasons: list[PatchRefusal],
    state: GraphState,
    graphs: tuple[GraphModel, GraphModel],
    now: int,
) -> JudgedPatch:
    """Add other reasons against a patch, and the new limit in time: it counts from the start and must lie ahead."""
    old, new = (graph.limits.time_ms for graph in graphs)
    due = None if state.over or old == new or state.due != _run_deadline(state, old) else _run_deadline(state, new)
    if due and due <= now:
        text = f"the new limit in time passed {(now - due) // 1000} seconds ago; it counts from the start of the run"
        reasons = [*reasons, PatchRefusal("patch.limit_passed", text, path="limits.time", hint="Set a later one.")]
    if reasons:
        return JudgedPatch(msgspec.structs.replace(judged.plan, refusals=[*reasons, *judged.plan.refusals]))
    if due is None or judged.event is None:
        return judged
    return JudgedPatch(judged.plan, msgspec.structs.replace(judged.event, due=due))


def _run_deadline(state: GraphState, time_ms: int) -> int:
    return state.started_at + time_ms if time_ms else 0


def judge_way_back(program: HostedGraph, fold: Fold, state: GraphState, place: str, env: Env) -> tuple[WayBack, Past]:
    """Find out how a run goes back to a place. Raises MissingInputs, NotFound, Refused."""
    log = env.log()
    if log is None:
        raise MissingInputs(log=True)
    past = read_past(program, fold, state.uid, log)
    return find_way_back(program.graph, state, past, place), past


class GraphJudge:
    """Works out one patch."""

    def __init__(
        self,
        program: HostedGraph,
        now: HostedGraph,
        state: GraphState,
        form: GraphPatch,
        past: Past,
        *,
        undoes: int = 0,
        undoing: bool = False,
        back: WayBack | None = None,
    ) -> None:
        """``undoes``: the patch that this undoes; ``undoing``: nothing has happened since that patch.

        ``back``: the run goes back to a place.
        """
        self._old, self._new = program.graph, now.graph
        self._before = state
        self._form, self._undoes, self._undoing, self._back = form, undoes, undoing, back
        self._rev = len(state.revisions) + 1
        self._old_scopes, self._new_scopes = StaticScopes(self._old), StaticScopes(self._new)
        rename = {old: new for old, new in form.rename.items() if old in self._old.nodes}
        self._same: GraphIdentity = identify(self._old, self._new, rename)
        self._past = _rename_past(past, self._same)
        self._state = copy_graph_state(state)
        self._game = PatchGame(self._old, self._new, self._state)
        self._refusals: list[PatchRefusal] = []
        self._entries: list[PlanEntry] = []
        self._notes: list[str] = []

    def judge(self) -> JudgedPatch:
        """Return the plan, and the event unless the patch is refused."""
        event = self._patched_event()
        self._check_rename()
        self._game.adopt(event)
        instructions = Instructions(self._form, self._new_scopes, self._state, self._past, self._rev)
        instructions.resolve()
        self._refusals += instructions.refusals
        changes = [*instructions.changes, *(self._back.changes(self._rev) if self._back is not None else ())]
        leaving = {one.token for one in changes if one.token}
        places = NewPlaces(self._old_scopes, self._new_scopes, self._same, self._before)
        self._refusals += places.refusals(leaving)
        if self._refusals:
            return self._build_judgement(None)
        event = msgspec.structs.replace(event, tokens=[*self._find_reroutes(leaving), *changes])
        if self._refusals:
            return self._build_judgement(None)
        self._game.instruct(event)
        self._report_instructions(event)
        event = msgspec.structs.replace(
            event, slots=self._slot_changes(event), repeated=self._find_repeated_work(event)
        )
        self._game.mend(event.slots)
        self._game.conclude()
        self._report_consequences(event)
        self._check_end()
        return self._build_judgement(event)

    def _build_judgement(self, event: e.RunPatched | None) -> JudgedPatch:
        verdict = ""
        if event is not None and not self._refusals and not self._state.over:
            verdict, event = self._check_soundness(event)
        plan = PatchPlan(
            run="",
            entries=self._entries,
            notes=self._notes,
            verdict=verdict,  # type: ignore[arg-type]
            refusals=self._refusals,
            unchanged=event == e.RunPatched(rev=self._rev),
        )
        return JudgedPatch(plan, event if not self._refusals else None)

    # --- names ----------------------------------------------------------------------------------------------------

    def _patched_event(self) -> e.RunPatched:
        same = self._same
        edges = rename_remembered(sorted(remembered_edges(self._before)), self._old, self._new, same, self._rev)
        entries = {self._new.edges[name].to for name in self._new.start}
        known = {same.node(self._old.edges[name].to) for name in self._old.start}
        for node in sorted(entries - known if self._before.begun else ()):
            self._notes.append(f"never_starts: {node} is a new entry, and the run has started")
        return e.RunPatched(
            rev=self._rev,
            nodes={old: new for old, new in same.nodes.items() if old != new},
            edges=edges,
            loops={old: new for old, new in same.loops.items() if old != new},
            recalled=self._recall_outputs(),
            state={name.removeprefix("state."): value for name, value in self._form.set.items()},
        )

    def _check_rename(self) -> None:
        for old, new in self._form.rename.items():
            if old not in self._old.nodes or new not in self._new.nodes:
                missing = old if old not in self._old.nodes else new
                text = f"{old[:60]} cannot be renamed to {new[:60]}: there is no {missing[:60]}"
                self._refusals.append(PatchRefusal("patch.unknown_token", text, path=f"rename.{old[:60]}"))

    def _recall_outputs(self) -> dict[str, dict[str, tuple[int, Raw]]]:
        """Return the outputs that expressions of the new graph name and live tokens have not kept."""
        wanted = {name for name, node in self._new.nodes.items() if node.remembered}
        found: dict[str, dict[str, tuple[int, Raw]]] = {}
        kept = {token.id: token.seen for token in self._before.tokens.values()}
        kept.update((FRAME + frame.id, frame.seen) for frame in self._before.frames.values())
        for name, seen in kept.items():
            known = {self._same.node(node) for node in seen}
            past = self._past.seen.get(name, {})
            lacks = {node: (one.visit, one.output) for node, one in past.items() if node in wanted - known}
            if lacks:
                found[name] = lacks
        return found

    # --- joins ----------------------------------------------------------------------------------------------------

    def _find_reroutes(self, leaving: set[str]) -> Iterator[e.TokenPatch]:
        """Yield the waiting tokens whose edge is gone and that take the place of another one."""
        side = PatchSide(self._new_scopes, ScopeReach(self._new_scopes), self._state)
        new_edges = set(self._new.edges) - set(self._same.edges.values())
        for token in self._state.tokens.values():
            if token.mode != "joining" or token.id in leaving or token.edge in self._new.edges:
                continue
            reached = side.walk(token.path, self._nodes_run(token.path), set())
            sender = token.sender if token.sender in self._new.nodes else ""
            edge = find_reroute(token, sender, side, reached, new_edges)
            if edge:
                self._entries.append(PlanEntry("reroutes", token.sender, self._new.edges[edge].source, token.node))
                yield e.TokenPatch(do="reroute", token=token.id, edge=edge, node=token.node)
            else:
                place = f"{token.node}/{token.id}"
                text = f"a token waits at {token.node} over the edge from {token.sender}, which is gone"
                hint = "Keep the edge, or move or drop the token."
                self._refusals.append(PatchRefusal("patch.waiting_token", text, place, hint=hint))

    def _nodes_run(self, path: Path) -> dict[str, NodeVisit]:
        """Return the nodes that have run in a scope. A token that is being routed has completed its work."""
        found = dict(self._past.has_run(path))
        for token in self._state.tokens.values():
            if token.mode == "routing" and token.path == path:
                found.setdefault(token.node, NodeVisit(token.value))
        return found

    def _slot_changes(self, event: e.RunPatched) -> list[e.SlotPatch]:
        """Work out what happens to the slots in every live scope, and refuse what would run again by accident."""
        before = PatchSide(self._old_scopes, ScopeReach(self._old_scopes), self._before)
        after = PatchSide(self._new_scopes, ScopeReach(self._new_scopes), self._state)
        free = {one.to for one in event.tokens if one.do in ("move", "start")}
        rules = JoinRules(after)
        known = {path_key(path) for path in live_paths(self._before)}
        found: list[e.SlotPatch] = []
        for path in live_paths(self._state):
            scope = self._live_scope(path, before if path_key(path) in known else None, after, free)
            found += rules.slots(scope)
            if not self._undoing:
                self._check_revived(scope)
        return found

    def _live_scope(self, path: Path, before: PatchSide | None, after: PatchSide, free: set[str]) -> LiveScope:
        """Find out what could happen in a scope before the patch, and what can happen after it."""
        ran = self._nodes_run(path)
        looked = {node: visit for node, visit in ran.items() if node not in self._form.again}
        was = self._nodes_run_before(path)
        return LiveScope(
            path,
            ran,
            self._reached_by_new_names(before.walk(path, was, set())) if before is not None else nothing_reached(),
            after.walk(path, looked, free),
            self._reached_by_new_names(before.walk(path, was, set(), tokens=True))
            if before is not None
            else nothing_reached(),
            after.walk(path, looked, free, tokens=True),
        )

    def _nodes_run_before(self, path: Path) -> dict[str, NodeVisit]:
        old = {new: name for name, new in self._same.nodes.items()}
        return {old.get(node, node): visit for node, visit in self._nodes_run(path).items()}

    def _reached_by_new_names(self, reached: Reached) -> Reached:
        same = self._same
        nodes = {same.node(node) for node in reached.nodes}
        return Reached(nodes, {same.edges[edge] for edge in reached.edges if edge in same.edges}, set())

    def _check_revived(self, scope: LiveScope) -> None:
        """Refuse edges over which a token can come only now, to a node that has run."""
        for name in sorted(scope.tokens_after.edges - scope.tokens_before.edges):
            edge = self._new.edges[name]
            node = self._new.nodes[edge.source].closed_by if edge.opens and edge.source else edge.to
            visit = scope.ran.get(node)
            if visit is None:
                continue
            if name not in scope.tokens_after.freely and node not in self._form.again:
                hint = f"Write again: [{node}] if it may really run twice."
                text = f"{node} has run, and a token could now come to it again from {edge.source or 'start'}"
                self._refusals.append(PatchRefusal("patch.revives", text, node, hint=hint))

    def _find_repeated_work(self, event: e.RunPatched) -> list[e.RepeatedWork]:
        """Return the work to which moved and started tokens come again, and the nodes in ``again``."""
        targets = [(one.node, one.path) for one in event.tokens if one.do in ("move", "start")]
        for path in live_paths(self._state):
            targets += [(node, path_steps(path)) for node in self._form.again if node in self._past.has_run(path)]
        known = {(one.earlier.place, one.earlier.n) for one in event.tokens if one.earlier is not None}
        found = []
        for one, effect in works_behind(targets, self._new_scopes, self._past, self._state.tokens):
            if effect == "irreversible":
                detail = KEEPS if bytes(one.work.output) else ASKS
                self._entries.append(PlanEntry("repeats", one.node, detail=detail))
            if (one.work.place, one.work.n) not in known:
                work = one.work if effect == "irreversible" else msgspec.structs.replace(one.work, output=e.ABSENT)
                found.append(msgspec.structs.replace(one, work=work))
        return found

    # --- consequences ---------------------------------------------------------------------------------------------

    def _report_instructions(self, event: e.RunPatched) -> None:
        for name, value in event.state.items():
            text = values.preview_text(value)
            self._entries.append(PlanEntry("sets", f"state.{name}", detail=text))
        for one in event.tokens:
            old = self._before.tokens.get(one.token)
            if one.do == "move" and old is not None:
                what = "restarts" if self._same.node(old.node) == one.node else "moves"
                self._entries.append(PlanEntry(what, old.node, one.node if what == "moves" else "", one.token))
            elif one.do == "drop" and old is not None:
                self._entries.append(PlanEntry("drops", old.node, detail=one.token))
            elif one.do == "start":
                self._entries.append(PlanEntry("starts", one.node))

    def _report_consequences(self, event: e.RunPatched) -> None:
        edges = self._new.edges
        for slot in event.slots:
            self._entries += [PlanEntry("skips", edges[name].source, slot.node) for name in slot.skip]
            self._entries += [PlanEntry("unskips", edges[name].source, slot.node) for name in slot.unskip]
        self._entries += [PlanEntry("fires", node) for node in self._game.fired]
        told = {one.token for one in event.tokens}
        for token in self._before.tokens.values():
            now = self._state.tokens.get(token.id)
            if now is None and token.mode in NOT_ARRIVED and token.id not in told:
                self._entries.append(PlanEntry("cancels", token.node, detail=token.id))
            elif now is not None and token.mode == "queued" and now.mode != "queued":
                self._entries.append(PlanEntry("begins", now.node, detail=token.id))
            elif now is not None and now.node != token.node:
                self._entries.append(PlanEntry("renames", token.node, now.node, token.id))

    def _check_end(self) -> None:
        if self._state.over or not self._state.begun:
            return
        if not self._state.tokens:
            text = "no token would be left, so the run would end"
            self._refusals.append(PatchRefusal("patch.would_end", text, hint="To end the run, use weft cancel."))
        for frame in self._state.frames.values():
            name = derive("failed", frame.id)
            if name in self._state.tokens and name not in self._before.tokens:
                failure = self._state.tokens[name].failure
                text = failure.message if failure is not None else f"{frame.fan_in} would fail"
                self._refusals.append(PatchRefusal("patch.would_end", text, frame.fan_in))

    def _check_soundness(self, event: e.RunPatched) -> tuple[str, e.RunPatched]:
        """Look for positions in which the run would be stuck, if the patch changes the graph or a token."""
        if not self._state.begun or (self._new == self._old and not event.tokens):
            return "", event
        moved = any(one.do in ("move", "start") for one in event.tokens)
        verdict, moves = check_here(self._new, self._state, all_orders=moved)
        if verdict == "unsound":
            way = "; ".join(moves[:20])
            text = f"the run could get stuck from here{f': {way}' if way else ''}"
            self._refusals.append(PatchRefusal("patch.unsound_here", text))
        elif verdict == "unknown" and not self._form.unchecked:
            text = "there are too many positions to find out whether the run can get stuck from here"
            hint = "Write unchecked: true to apply the patch anyway."
            if self._undoes:
                hint = f"Patch the run to version {self._form.to} instead, with unchecked: true."
            if self._back is not None:
                hint = "To go back anyway, repeat the command with --force."
            self._refusals.append(PatchRefusal("patch.unchecked", text, hint=hint))
        return verdict, msgspec.structs.replace(event, unchecked=verdict == "unknown")


def _rename_past(past: Past, same: GraphIdentity) -> Past:
    """Return the past with the new names of nodes. What nodes did that are gone does not matter."""
    if all(old == new for old, new in same.nodes.items()):
        return past

    def now(node: str) -> str:
        return same.nodes.get(node, node)

    ran = {path: {now(node): visit for node, visit in visits.items()} for path, visits in past.ran.items()}
    seen = {token: {now(node): one for node, one in outputs.items()} for token, outputs in past.seen.items()}
    works = {token: msgspec.structs.replace(one, node=now(one.node)) for token, one in past.works.items()}
    return Past(ran, seen, works)
