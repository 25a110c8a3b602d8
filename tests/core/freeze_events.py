"""Write down, for every kind of record, what it does to a state: ``python -m tests.core.freeze_events``.

It may add a file for a kind that has none, and never changes one: a released record does for ever what it did.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.core.histories import History, Tape, play
from tests.goal.documents import Program as GoalProgram
from tests.goal.patching import command_of
from tests.goal.random_patches import PatchedWorld
from tests.goal.table import Table as GoalTable
from tests.goal.worlds import ALL, planned, random_behaviour, random_steps
from tests.graph.documents import compiled, nodes
from tests.graph.random_graphs import timed, well_nested
from tests.graph.random_plays import Play, Program, drawn_answers
from tests.schedule.desk import play_schedule
from weft.core import commands as c
from weft.core import events as e
from weft.core.code.machine import CodeMachine
from weft.core.code.style import EVENTS
from weft.core.goal.machine import GoalMachine
from weft.core.goal.state import GoalState
from weft.core.graph.machine import GraphMachine, restore_state
from weft.core.graph.model import GraphModel
from weft.core.graph.tokens import GraphState
from weft.core.run.kernel import Kernel
from weft.core.run.statuses import ALLOWED
from weft.core.schedule.machine import ScheduleMachine
from weft.core.schedule.state import ScheduleState
from weft.core.schedule.state import restore_state as restore_schedule
from weft.errors import Refused
from weft.graphs.load import load_graph
from weft.runtime.cron_calendar import CALENDAR

FOLDER = Path(__file__).parents[1] / "golden" / "events"
HASHES = FOLDER / "HASHES"
CASES_PER_KIND = 3
UID = "0" * 32
UNMATCHED = compiled(nodes(a={"step": "s", "next": [{"to": "b", "when": "output.never"}]}, b={"step": "s"}))

ADDED = ("once",)
"""Fields that the entries of states have got since the records were frozen. They are derived from the records."""

ADDED_TO_FORKS = ("has_new_input",)
"""The same of what forks know about their originals."""

Case = dict[str, Any]
"""The state before and after, the record, and the time; of a graph run also the graph."""


def kind_of(event: type) -> str:
    return str(event.__struct_config__.tag)  # type: ignore[attr-defined]


GRAPH = (e.NodeRouted, e.NodeFailed, e.FailureRaised, e.RunEnding, e.TaskScheduled, e.TaskSucceeded)
GOAL = (
    e.StepStarted,
    e.StepCompleted,
    e.StepFailedEvent,
    e.StepSkipped,
    e.WorkSkipped,
    e.WorkResumed,
    e.DeadlineSet,
    e.DeadlinePassed,
    e.RunEnding,
    e.TaskScheduled,
    e.TaskSucceeded,
    e.RunPatched,
)


SCHEDULE = (
    e.RunStarted,
    e.ScheduleDeclared,
    e.ScheduleFired,
    e.ScheduleQueued,
    e.ScheduleMissed,
    e.ScheduledRunFound,
    e.ScheduledRunEnded,
    e.BackfillRequested,
    e.ScheduleCarried,
    e.TimerFired,
    e.RunPaused,
    e.RunResumed,
    e.RunCancelledEvent,
)


def kinds() -> list[str]:
    """What must be frozen: every kind of a code run, and what graphs, goals and schedules make of theirs."""
    code = [kind_of(event) for event in EVENTS]
    graph = [f"graph.{kind_of(event)}" for event in GRAPH]
    schedule = [f"schedule.{kind_of(event)}" for event in SCHEDULE]
    return sorted([*code, *graph, *(f"goal.{kind_of(event)}" for event in GOAL), *schedule])


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hashes() -> dict[str, str]:
    """The hash that each file must have, by name."""
    if not HASHES.exists():
        return {}
    pairs = (line.split() for line in HASHES.read_text().splitlines() if line)
    return {name: digest for digest, name in pairs}


def applied(kind: str, case: Case) -> Any:
    """What the code of today makes of a frozen case."""
    before = msgspec.json.encode(case["before"])
    machine: Kernel
    if kind.startswith("graph."):
        machine = GraphMachine(Program(msgspec.convert(case["graph"], GraphModel)), restore_state(before))
    elif kind.startswith("goal."):
        machine = GoalMachine.restore(GoalProgram(), before)
    elif kind.startswith("schedule."):
        machine = ScheduleMachine(CALENDAR, restore_schedule(before))
    else:
        machine = CodeMachine.restore(before)
    machine.evolve(e.decode(msgspec.json.encode(case["event"])), at=case["at"])
    state = msgspec.json.decode(machine.snapshot())  # type: ignore[attr-defined]
    for part in state.get("entries", {}).values():
        for field in ADDED:
            part.pop(field, None)
    for field in ADDED_TO_FORKS:
        state.get("fork", {}).pop(field, None)
    return state


# --- finding cases ------------------------------------------------------------------------------------------------


Cases = Iterator[tuple[str, Case]]


def _around(machine: Any, log: Iterable[tuple[e.AnyEvent, int]], prefix: str = "", **more: Any) -> Cases:
    """The states around every record of a log."""
    before = machine.snapshot()
    for event, at in log:
        machine.evolve(event, at=at)
        after = machine.snapshot()
        case = {"before": before, "at": at, "event": e.encode(event), "after": after}
        yield prefix + kind_of(type(event)), case | more
        before = after


def _code(seed: int) -> Cases:
    chance = random.Random(f"freeze {seed}")
    history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(30, 250))]))
    return _around(CodeMachine.fresh(history.state.uid), history.log)


def _fork(seed: int) -> Cases:
    """A fork of a run that was cut somewhere: edited, with a task held back that is released or asked about."""
    chance = random.Random(f"freeze fork {seed}")
    history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(10, 60))]))
    machine = CodeMachine.fresh(history.state.uid)
    log = list(history.log[: chance.randrange(1, len(history.log) + 1)])
    for event, at in log:
        machine.evolve(event, at=at)
    if machine.state.over or not machine.state.tasks:
        return iter(())
    number, task = next(iter(machine.state.tasks.items()))
    irreversible = e.Policy(effect="irreversible")
    known = e.KnownResult("pay", "pay", "digest", 1, msgspec.Raw(b"7"))
    after: list[e.AnyEvent] = [
        e.ResultsKnown(results=[known]),
        e.RunForked(effects="reuse", by="ann", yes=["mail"][: seed % 2]),
        e.RunEdited(results={task.place or machine.location(number): msgspec.Raw(b"3")}, by="ann"),
        e.TaskScheduled(at=["pay"], step="pay", input=msgspec.Raw(b"{}"), policy=irreversible),
    ]
    opened = e.EntryId(len(log) + len(after))
    after.append(e.PerformAsked(task=opened, title="?") if seed % 3 else e.TaskReleased(task=opened))
    after.append(e.EntriesDropped(dropped=sorted(machine.state.entries)[-2:]))
    at = log[-1][1]
    return _around(CodeMachine.fresh(history.state.uid), [*log, *((event, at + 1) for event in after)])


def _patched(seed: int) -> Cases:
    """A run that is brought to another version somewhere on its way."""
    chance = random.Random(f"freeze patched {seed}")
    history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(10, 60))]))
    log = list(history.log)
    if history.state.status not in ALLOWED[c.PatchRun].acts:
        return iter(())
    patched = e.RunPatched(rev=1, base="1", version="2", patch=msgspec.Raw(b'{"to":"2"}'), by="ann", digest="d" * seed)
    return _around(CodeMachine.fresh(history.state.uid), [*log, (patched, log[-1][1] + 1)])


def _moved(seed: int) -> Cases:
    """A run that was moved to another store somewhere on its way, and adopted there."""
    chance = random.Random(f"freeze moved {seed}")
    history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(10, 60))]))
    log = list(history.log[: chance.randrange(1, len(history.log) + 1)])
    machine = CodeMachine.fresh(history.state.uid)
    for event, at in log:
        machine.evolve(event, at=at)
    if machine.state.over:
        return iter(())
    at = log[-1][1]
    moved = e.RunMoved(digest=f"{seed:064x}", to="there"[: 5 * (seed % 2)], reason="why", by="ann")
    moves = [(moved, at + 1), (e.RunAdopted(digest=moved.digest, by="bob"), at + 2)]
    return _around(CodeMachine.fresh(history.state.uid), [*log, *moves])


def _asked(seed: int) -> Cases:
    """A patch that waits or is reviewed, in a run that was cut somewhere, until it is dropped."""
    chance = random.Random(f"freeze asked {seed}")
    history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(10, 60))]))
    log = list(history.log[: chance.randrange(1, len(history.log) + 1)])
    asked = len(log) + 1
    review = ["team:ops"] if seed % 3 else []
    after: list[e.AnyEvent] = [
        e.PatchAsked(patch=msgspec.Raw(b'{"to":"2"}'), version="2", due=9_000 * (seed % 2), by="ann", review=review)
    ]
    if review:
        about = msgspec.Raw(b'{"plan":{}}')
        after.append(e.PatchReviewAsked(asked=asked, digest="d", title="Patch it?", about=about))
        after.append(e.AskAnswered(ask=e.EntryId(asked), approved=seed % 5 > 0, by="bob"))
    after.append(e.PatchDropped(asked=asked, code="patch.rejected" if review else "patch.not_in_time", by="bob"))
    at = log[-1][1]
    return _around(CodeMachine.fresh(history.state.uid), [*log, *((event, at + 1) for event in after)])


def _graph(seed: int) -> Cases:
    """A run to its end; every third is cancelled on the way, and some end where no edge matches."""
    graph = load_graph(timed(well_nested(seed), seed)).graph if seed % 5 else UNMATCHED
    run = Play(graph, drawn_answers(seed, failing=0.1), watched=False)
    if seed % 3:
        run.to_the_end(seed)
    else:
        run.tell(c.CancelRun())
    machine = GraphMachine(Program(graph), GraphState(uid=UID))
    return _around(machine, [(event, 0) for event in run.log], "graph.", graph=msgspec.json.encode(graph))


def _goal(seed: int) -> Cases:
    rng = random.Random(seed)
    found = planned(rng, random_steps(rng, ALL, steps=rng.randint(2, 5)))
    if found is None:
        return iter(())
    table = GoalTable(*found)
    table.play(random_behaviour(rng, ALL, found[0]), seed=seed)
    return _around(GoalMachine(GoalProgram(), GoalState(uid=UID)), table.log, "goal.")


def _patched_goal(seed: int) -> Cases:
    """A goal run that is patched on its way."""
    world = PatchedWorld(seed)
    table = world.table()
    world.move(table, 4)
    with contextlib.suppress(Refused):
        table.tell(command_of(world.request(table)))
    return _around(GoalMachine(GoalProgram(), GoalState(uid=UID)), table.log, "goal.")


def _schedule(seed: int) -> Cases:
    log = play_schedule(random.Random(f"freeze schedule {seed}"), carries=seed % 4 == 0)
    return _around(ScheduleMachine(CALENDAR, ScheduleState(uid=UID)), log, "schedule.")


def found_cases(missing: set[str]) -> dict[str, list[Case]]:
    """The smallest cases of each missing kind among many random histories."""
    found: dict[str, list[Case]] = {kind: [] for kind in missing}
    styles: list[tuple[Callable[[int], Cases], int]] = [
        (_code, 600),
        (_fork, 200),
        (_patched, 60),
        (_moved, 100),
        (_asked, 60),
        (_graph, 60),
        (_goal, 300),
        (_patched_goal, 60),
        (_schedule, 40),
    ]
    for draw, seeds in styles:
        for seed in range(seeds):
            for kind, case in draw(seed):
                if kind in missing:
                    found[kind].append(case)
    for kind, cases in found.items():
        unlike = {len(case["event"]): case for case in sorted(cases, key=_size, reverse=True)}
        found[kind] = sorted(unlike.values(), key=_size)[:CASES_PER_KIND]
    return found


def _size(case: Case) -> int:
    return len(case["before"]) + len(case.get("graph", b""))


def freeze() -> list[str]:
    """Write what is missing; the kinds that were added."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    missing = {kind for kind in kinds() if not (FOLDER / f"{kind}.json").exists()}
    for kind, cases in sorted(found_cases(missing).items()) if missing else []:
        plain = [
            {name: msgspec.json.decode(part) if isinstance(part, bytes) else part for name, part in case.items()}
            for case in cases
        ]
        path = FOLDER / f"{kind}.json"
        path.write_bytes(msgspec.json.format(msgspec.json.encode({"kind": kind, "cases": plain}), indent=1) + b"\n")
        with HASHES.open("a") as file:
            file.write(f"{hash_of(path)}  {path.name}\n")
    return sorted(missing)


if __name__ == "__main__":
    print("added:", ", ".join(freeze()) or "nothing", file=sys.stderr)
