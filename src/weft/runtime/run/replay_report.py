"""What the replay of a code run against another version found, as a patch of the run needs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from weft.core import events as e
from weft.core.code.patch import ReplayReport
from weft.core.ids import RunUid, Seq
from weft.core.run.env import PastEvent
from weft.core.run.patch_plan import PatchRefusal
from weft.runtime.programs import code_machine, new_machine
from weft.runtime.run.driver import Program
from weft.runtime.run.replay import Replayed, ReplayedRun, replay

NAMES_MAX = 5


class ReplayTarget(msgspec.Struct, frozen=True):
    """A run, and the version of its code that it is to follow."""

    run_id: str
    workflow: str
    version: str

    def __str__(self) -> str:
        return f"Version {self.version[:60]} of {self.workflow}"


class LogInMemory(msgspec.Struct, frozen=True):
    """The whole log of a run in memory."""

    uid: RunUid
    log: Sequence[PastEvent]
    now: int
    blob: Callable[[str], Awaitable[bytes]]
    """Return a blob."""


async def make_replay_report(run: LogInMemory, target: ReplayTarget, program: Program | None) -> ReplayReport:
    """Replay a log in isolation against the code of a version. Without the code, the report refuses the version."""
    seq = len(run.log)
    if program is None:
        return ReplayReport(seq=seq, refusals=[no_code(target.workflow, target.version)])
    machine = new_machine("code", None, run.uid)
    for past in run.log:
        machine.evolve(past.event, at=past.at)

    async def event(number: Seq) -> bytes:
        return e.encode(run.log[number - 1].event)

    replayed = ReplayedRun(machine=code_machine(machine), blob=run.blob, event=event, now=run.now)
    return report_of(await replay(replayed, program), target, seq, program.review)


def report_of(replayed: Replayed, target: ReplayTarget, seq: int, review: Sequence[str]) -> ReplayReport:
    """Return the report about a replay of the events up to ``seq``."""
    refusal = refusal_of(replayed, target)
    return ReplayReport(
        seq=seq,
        refusals=[refusal] if refusal is not None else [],
        notes=[_unvisited_note(replayed, target.version)] if replayed.unvisited and refusal is None else [],
        review=list(review),
    )


def no_code(workflow: str, version: str) -> PatchRefusal:
    """Return the refusal of a version whose code is not in this process."""
    text = f"The code of {workflow} in version {version[:60]} is not in this process to be replayed."
    hint = "Name the app that has it (--app app.py), or ask a server that hosts it."
    return PatchRefusal("patch.not_hosted", text, hint=hint)


def refusal_of(replayed: Replayed, target: ReplayTarget) -> PatchRefusal | None:
    """Return why a version does not fit the log of a run, with the way out; None if it fits."""
    if replayed.verdict == "fits":
        return None
    # Where code fails is a line of it, and not a place in the run.
    place = replayed.location if replayed.verdict != "raises" else ""
    where = f"at {place}" if place else "at its start"
    fork = f"weft fork {target.run_id}{f' --before {place}' if place else ''} --to {target.version}"
    if replayed.verdict == "raises":
        line = f" [{replayed.location}]" if replayed.location else ""
        text = f"{target} fails before it gets to where the run is: {replayed.message}{line}"
        hint = f"Mend the version, or fork the run: {fork}"
    else:
        text = (
            f"{target} does not fit the log {where}: "
            f"it has {replayed.recorded}, and the code asks for {replayed.asked}."
        )
        hint = f"Mend the version (ctx.version, ctx.removed, or the old name), or fork the run: {fork}"
    return PatchRefusal(
        f"patch.{replayed.verdict}", text, place=place, hint=hint, recorded=replayed.recorded, asked=replayed.asked
    )


def _unvisited_note(replayed: Replayed, version: str) -> str:
    """Return the note about recorded entries that a version no longer comes to."""
    more = len(replayed.unvisited) - NAMES_MAX
    names = ", ".join(replayed.unvisited[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"Version {version[:60]} no longer comes to {names}. The run goes on without it."
