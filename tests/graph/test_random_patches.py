"""Random graphs, moments and edits: what is guaranteed of a patch, with a ledger of what ran."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests import scale
from tests.graph.patch_table import PatchTable
from tests.graph.random_edits import Edit
from tests.graph.random_graphs import Document, well_nested
from tests.graph.random_plays import check_counts, drawn_answers
from tests.graph.test_check import checked
from weft.core import commands as c
from weft.core.graph.tokens import GraphState
from weft.core.ids import EntryId
from weft.errors import BadGraph, Failure, NotFound, PatchRefused, Refused

pytestmark = scale.MARKS
PER_TEST = 30
SEEDS = scale.scaled(range(150), range(900))
"""Those of ``make test`` ask for more than 300 patches."""
FOUND = (31, 64, 106)
"""Seeds that were wrong once: an undo gave a node no name back or found no edge for a token that waits, and the late
branches of a fan-in that keeps its rule were merged into missing data."""
MARKING = ("tokens", "frames", "loops", "slots", "data")


class RandomRun(PatchTable):
    """A run whose answers are drawn, with a ledger of the nodes that have completed."""

    def __init__(self, document: Document, seed: int) -> None:
        self.draw = random.Random(seed)
        self.reply = drawn_answers(seed)
        self.ledger: Counter[tuple[str, str]] = Counter()
        super().__init__({"name": "drawn", **document}, {})

    def step(self) -> None:
        """Let one task complete, or one timer fire."""
        number = self.draw.choice(sorted({*self.open, *self.state.timers}))
        if number in self.state.timers:
            self.now = max(self.now, self.state.timers[number])
            self.tell(c.FireTimer(EntryId(number)))
            return
        effect = self.open.pop(number)
        token = self.state.tokens[self.state.by_task[number]]
        self.ledger[token.node, "/".join(f"{seg.id}.{seg.n}" for seg in token.path)] += 1
        given = self.reply(token.node, token.id)
        if isinstance(given, str):
            failure = Failure(type=given, message=given)
            self.tell(c.ReportTaskFailed(EntryId(number), effect.attempt, effect.delivery, failure, False))
        else:
            output = Raw(msgspec.json.encode(given))
            self.tell(c.ReportTaskSucceeded(EntryId(number), effect.attempt, effect.delivery, output))

    def copied_run(self) -> PatchTable:
        """Return a copy, to try something on."""
        return self.copied()

    def finish(self) -> None:  # type: ignore[override]
        for _ in range(5_000):
            if self.state.over:
                return
            self.step()
        raise AssertionError("it does not end")


def marking(state: GraphState) -> Any:
    fields = msgspec.json.decode(msgspec.json.encode(state))
    return {name: fields.get(name) for name in MARKING}


def lasting(run: PatchTable) -> Any:
    """Return the marking without what only remembers edges and visits, and how a fan-in was when it fired."""
    found = marking(run.state)
    graph = run.programs[run.state.version].graph
    kept = {}
    for name, slot in (found["slots"] or {}).items():
        slot["items"] = {edge: items for edge, items in slot.get("items", {}).items() if edge in graph.edges}
        if graph.nodes[slot["node"]].join == "edges" and (slot["items"] or slot.get("ran")):
            kept[name] = slot
    for frame in (found["frames"] or {}).values():
        frame.pop("rule", None)
    return {**found, "slots": kept}


def check_names(state: GraphState, run: PatchTable) -> None:
    """Check that nothing refers to what the graph does not have."""
    graph = run.programs[state.version].graph
    assert all(token.node in graph.nodes for token in state.tokens.values())
    assert all(one.loop in graph.loops for one in state.loops.values())
    for frame in state.frames.values():
        assert not frame.fan_in or frame.fan_in in graph.nodes
        assert all(one.edge in graph.edges for one in frame.branches.values() if one.status == "open")


def moment(seed: int) -> tuple[RandomRun, Document] | None:
    draw = random.Random(seed)
    document = well_nested(seed, failures=False)
    run = RandomRun(document, seed)
    for _ in range(draw.randint(0, 12)):
        if not run.state.over:
            run.step()
    return None if run.state.over else (run, {"name": "drawn", **document})


@pytest.mark.parametrize("seeds", [range(start, start + PER_TEST) for start in SEEDS[::PER_TEST]], ids=str)
def test_a_patch_keeps_what_is_guaranteed(seeds: range) -> None:
    for seed in seeds:
        patch_and_play(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_wrong_once_stays_right(seed: int) -> None:
    patch_and_play(seed)


def patch_and_play(seed: int) -> None:
    """Patch a random run at a random moment, see what an undo would do, and play it to its end."""
    found = moment(seed)
    if found is not None:
        _patch_and_play(*found, seed)


def _patch_and_play(run: RandomRun, document: Document, seed: int) -> None:
    before = run.machine.snapshot()
    was = run.copied_run()
    _check_nothing(run)
    draw = random.Random(seed)
    edit = Edit(document, draw).change(draw.randint(1, 3))
    try:
        command = run.prepare({"ops": [], "rename": edit.rename}, edit.document)
    except BadGraph:
        return
    does = {entry.what for entry in run.judge(command).entries}
    totals = {frame.id: (frame.total, len(frame.arrived)) for frame in run.state.frames.values()}
    ran = Counter(run.ledger)
    try:
        run.tell(command)
    except PatchRefused:
        assert run.machine.snapshot() == before, "refused means that nothing was changed"
        run.finish()
        return
    check_counts(run.state)
    check_names(run.state, run)
    for frame in run.state.frames.values():
        assert frame.id not in totals or frame.total == totals[frame.id][0], "no branch is lost"
    patched = run.machine.snapshot()
    assert run.refolded().snapshot() == run.folded_from(before).snapshot() == patched
    if not does & {"fires", "begins", "cancels"}:
        other = run.copied_run()
        other.tell(other.undoing())
        assert lasting(other) == lasting(was), "an undo restores the marking"
    run.finish()
    assert run.state.failure is None or run.state.failure.type != "deadlock", f"stuck: {run.state.failure}"
    ended = run.machine.snapshot()
    assert all(folded.snapshot() == ended for folded in (run.refolded(), *map(run.folded_from, (before, patched))))
    twice = [node for (node, path), times in run.ledger.items() if times > 1 and ran[node, path]]
    assert not twice, f"{twice} ran again"


@pytest.mark.parametrize("seeds", [range(start, start + PER_TEST) for start in SEEDS[::PER_TEST]], ids=str)
def test_a_patch_of_what_lies_ahead_ends_as_if_the_run_had_started_so(seeds: range) -> None:
    equal = sum(patch_ahead_and_play(seed) for seed in seeds)
    assert equal, "no patch was one of what lies ahead"


def patch_ahead_and_play(seed: int) -> bool:
    """Patch a random run, and compare it with one that was started so. Returns whether that can be compared."""
    draw = random.Random(seed)
    document = well_nested(seed, failures=False)
    edit = Edit(document, draw).change(draw.randint(1, 3))
    steps = draw.randint(0, 12)
    if edit.rename:
        return False
    try:
        runs = [RandomRun(one, seed) for one in (document, edit.document)]
    except BadGraph:
        return False
    for _ in range(steps):
        if any(run.state.over or not (run.open or run.state.timers) for run in runs):
            return False
        for run in runs:
            run.step()
    patched, other = runs
    if other.state.over or lasting(patched) != lasting(other):
        return False  # the change was felt already
    command = patched.prepare({"ops": []}, {"name": "drawn", **edit.document})
    try:
        patched.tell(command)
    except PatchRefused as refused:
        found = [one.code for one in refused.plan.refusals]
        assert found == ["patch.unchecked"] or checked(edit.document).outcome == "unsound", found
        return False
    for run in runs:
        run.finish()
    assert patched.ledger == other.ledger
    assert (patched.state.status, patched.state.data) == (other.state.status, other.state.data)
    return True


@pytest.mark.parametrize("seeds", [range(start, start + PER_TEST) for start in SEEDS[::PER_TEST]], ids=str)
def test_a_run_that_goes_back_ends(seeds: range) -> None:
    for seed in seeds:
        go_back_and_play(seed)


def go_back_and_play(seed: int) -> None:
    """Let a random run go back to a random node, and play it to its end."""
    found = moment(seed)
    if found is None:
        return
    run = found[0]
    before = run.machine.snapshot()
    nodes = sorted({node for node, _ in run.ledger})
    try:
        run.tell(c.RetryRun(run.draw.choice([*nodes, "nowhere"])))
    except (Refused, NotFound) as error:
        assert not isinstance(error, PatchRefused) or error.code in ("patch.unchecked", "patch.would_end"), error
        assert run.machine.snapshot() == before, "refused means that nothing was changed"
    check_counts(run.state)
    check_names(run.state, run)
    assert run.refolded().snapshot() == run.machine.snapshot()
    run.finish()
    assert run.state.failure is None or run.state.failure.type != "deadlock", f"stuck: {run.state.failure}"
    assert run.refolded().snapshot() == run.machine.snapshot()


@pytest.mark.parametrize("seeds", [range(start, start + PER_TEST) for start in SEEDS[::PER_TEST]], ids=str)
def test_a_run_whose_tokens_are_told_where_to_go_ends(seeds: range) -> None:
    applied = sum(instruct_and_play(seed) for seed in seeds)
    assert applied, "every patch was refused"


def instruct_and_play(seed: int) -> bool:
    """Patch a random run with instructions, and perhaps another document, and play it to its end."""
    found = moment(seed)
    if found is None:
        return False
    run, document = found
    draw = random.Random(f"instructions-{seed}")
    before = run.machine.snapshot()
    try:
        edit = Edit(document, draw).change(draw.randint(0, 2))
        told = {"rename": edit.rename, **instructions(run, edit, draw)}
        command = run.prepare({"ops": [], "reason": "r", **told}, edit.document)
    except BadGraph:
        return False
    try:
        run.tell(command)
    except PatchRefused:
        assert run.machine.snapshot() == before, "refused means that nothing was changed"
        return False
    check_counts(run.state)
    check_names(run.state, run)
    assert run.refolded().snapshot() == run.machine.snapshot()
    run.finish()
    assert run.state.failure is None or run.state.failure.type != "deadlock", f"stuck: {run.state.failure}"
    assert run.refolded().snapshot() == run.machine.snapshot()
    return True


def instructions(run: RandomRun, edit: Edit, draw: random.Random) -> dict[str, Any]:
    """Tell one or two tokens where to go in a new document."""
    nodes = sorted(edit.document["nodes"])
    tokens = draw.sample(sorted(run.state.tokens), min(len(run.state.tokens), draw.choice([1, 1, 2])))
    told: dict[str, Any] = {}
    for token in tokens:
        kind = draw.choice(["move", "move", "drop", "start", "restart"])
        if kind == "restart":
            node = run.state.tokens[token].node
            told.setdefault(kind, []).append(edit.rename.get(node, node))
        elif kind == "start":
            told.setdefault(kind, []).append({"node": draw.choice(nodes), "beside": token})
        elif kind == "drop":
            told.setdefault(kind, []).append({"token": token})
        else:
            told.setdefault(kind, []).append({"token": token, **_target(edit.document["nodes"], draw)})
    if draw.random() < 0.3:
        told["again"] = draw.sample(nodes, min(len(nodes), 2))
    return told


def _target(nodes: dict[str, Any], draw: random.Random) -> dict[str, str]:
    """Choose where a token is moved to, and if that is a join, over which edge it comes."""
    to = draw.choice(sorted(nodes))
    targets = {name: [entry["to"] for entry in node.get("next", ())] for name, node in nodes.items()}
    before = [name for name in sorted(nodes) if to in targets[name] or [to] in targets[name]]
    return {"to": to, "via": draw.choice(before)} if "join" in nodes[to] and before else {"to": to}


def _check_nothing(run: RandomRun) -> None:
    """Check that a patch without changes changes nothing."""
    same = run.copied_run()
    before = marking(same.state)
    assert same.judge(same.prepare({"ops": []})).unchanged
    same.tell(same.prepare({"ops": []}))
    assert marking(same.state) == before
