"""Check an open code run against the code of this process, by replaying its whole log in isolation."""

from __future__ import annotations

import msgspec

from weft.core.code.machine import CodeMachine
from weft.observe.live_finding import LiveFinding, LiveRun, input_misfits, not_hosted_finding, refused_change
from weft.runtime.code_patches import named_version, read_code_patch
from weft.runtime.patches import PatchService
from weft.runtime.programs import code_program
from weft.runtime.replays import replay_machine
from weft.runtime.run.replay import Replayed
from weft.runtime.run.replay_report import ReplayTarget, refusal_of


async def check_code(run: LiveRun, machine: CodeMachine) -> LiveFinding:
    """Return whether the code fits what the run has recorded: its version, or the one that it is to follow."""
    version = await _version_to_check(run)
    program = code_program(run.code.program(run.row.workflow, version))
    if program is None:
        return not_hosted_finding(run, version)
    misfit = await _first_misfit(run, machine)
    replayed = await replay_machine(run.service, run.row, machine, program, tolerant=run.tolerant)
    if replayed.verdict == "fits":
        return misfit or _visited(replayed)
    refusal = refusal_of(replayed, ReplayTarget(run.row.id, run.row.workflow, version)) if run.change.patch else None
    if refusal is not None:
        return msgspec.structs.replace(refused_change(refusal), verdict=replayed.verdict)
    return LiveFinding(
        verdict=replayed.verdict,
        place=replayed.location,
        recorded=replayed.recorded,
        asked=replayed.asked,
        message=replayed.message,
    )


async def _version_to_check(run: LiveRun) -> str:
    """Return the version to check against. Raises BadPatch if the change is none that a code run can have."""
    if not run.change.patch:
        return run.row.version
    form = read_code_patch(msgspec.json.encode(run.change.patch))
    return await named_version(PatchService(run.service, run.code), run.row, form.to)


async def _first_misfit(run: LiveRun, machine: CodeMachine) -> LiveFinding | None:
    """Return the first step in flight that no longer takes the input with which it will be performed."""
    entries = machine.state.entries
    for number, why in [one async for one in input_misfits(run, machine)]:
        return LiveFinding(verdict="value", place=entries[number].key if number in entries else "", message=why)
    return None


def _visited(replayed: Replayed) -> LiveFinding:
    if not replayed.unvisited:
        return LiveFinding()
    names = ", ".join(replayed.unvisited[:5])
    return LiveFinding(
        verdict="unvisited",
        place=replayed.unvisited[0],
        message=f"The code no longer comes to {names}. The run goes on; ctx.removed says that this is meant.",
    )
