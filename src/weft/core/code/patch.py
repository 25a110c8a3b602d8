"""Decide the patch of a code run: it follows another version of its code from where it stands. Pure."""

from __future__ import annotations

import msgspec

from weft.core.commands import PatchRun
from weft.core.events import RunPatched
from weft.core.run import lifecycle
from weft.core.run.patch_plan import PatchPlan, PatchRefusal
from weft.core.run.patches import evolve_patched
from weft.core.run.state import State
from weft.core.run.style import JudgedPatch

RETRIED_LATER = "The run has failed. It follows this version when it is retried."
GOES_ON = "The run is held. It goes on with this version."


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the replay of a log against another version found. The runtime has made it: code cannot be called here."""

    seq: int = -1
    """The last event that was replayed. For a run with more events, the report says nothing."""
    refusals: list[PatchRefusal] = []
    notes: list[str] = []
    review: list[str] = []
    """Who must agree to every patch, as the version declares."""


_report: msgspec.json.Decoder[ReplayReport] = msgspec.json.Decoder(ReplayReport)


def judge_patch(state: State, still: tuple[int, int], command: PatchRun) -> JudgedPatch:
    """Return what a patch does to a run: what its replay found. Outdated if the run has gone on since.

    The events after the first number of ``still``, up to the second one, are only about patches that wait.
    """
    report = _report.decode(command.prepared) if bytes(command.prepared) else ReplayReport()
    notes = list(report.notes)
    if state.status == "failed":
        notes.append(RETRIED_LATER)
    elif state.status == "held":
        notes.append(GOES_ON)
    is_same = report.review == state.review and state.status != "held"
    plan = PatchPlan(run="", notes=notes, refusals=report.refusals, unchanged=is_same)
    event = RunPatched(rev=0, review=report.review)
    return JudgedPatch(plan, event, is_outdated=not _is_current(report, state.seq, still))


def _is_current(report: ReplayReport, seq: int, still: tuple[int, int]) -> bool:
    """Return whether nothing has happened in a run since its replay, except to patches that wait."""
    first, last = still
    return report.seq == seq or (last == seq and first <= report.seq < last)


def evolve_patch(state: State, event: RunPatched) -> None:
    """Follow the other version. A run that was held because its code did not fit goes on."""
    evolve_patched(state, event)
    state.review = event.review
    if state.status == "held":
        lifecycle.evolve_resumed(state)
