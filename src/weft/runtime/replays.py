"""Fold a run from its whole log, without its snapshots, and replay it against other code. Reads only."""

from __future__ import annotations

from weft.core import commands as c
from weft.core.ids import Seq
from weft.core.machine import Machine
from weft.core.run.env import Env
from weft.ports.store import RunRow
from weft.runtime.programs import code_machine
from weft.runtime.reader import NO_SNAPSHOT
from weft.runtime.run.driver import Program
from weft.runtime.run.replay import Replayed, ReplayedRun, replay
from weft.runtime.schema_check import check_schema
from weft.runtime.service import RunService


async def fold_log(service: RunService, row: RunRow) -> Machine:
    """Return a copy of a run, folded from all events of its log. Raises NotFound, RunUnreadable."""
    return await service.reader.machine(row, fold=NO_SNAPSHOT)


async def replay_run(service: RunService, row: RunRow, program: Program, *, tolerant: bool = False) -> Replayed:
    """Replay a code run against a program in isolation: no claim, no write, no step. Raises RunUnreadable, Refused.

    The result says whether the code fits the log. It does not say what the run would do next.
    """
    return await replay_machine(service, row, await fold_log(service, row), program, tolerant=tolerant)


async def replay_onward(service: RunService, row: RunRow, program: Program) -> tuple[int, Replayed]:
    """Replay a code run as it would continue with a program; a failed run as if it were retried.

    Also returns the number of its last event. Raises RunUnreadable, Refused.
    """
    machine = await fold_log(service, row)
    seq, now = machine.state.seq, max(service.clock.now_ms(), machine.state.at)
    if machine.state.status == "failed":
        for event in machine.decide(c.RetryRun(), Env(now=now, check=check_schema)):
            machine.evolve(event, at=now)
    return seq, await replay_machine(service, row, machine, program)


async def replay_machine(
    service: RunService, row: RunRow, machine: Machine, program: Program, *, tolerant: bool = False
) -> Replayed:
    """Replay a run that was folded from its whole log. This changes its state. Raises Refused."""

    async def event(seq: Seq) -> bytes:
        (stored,) = await service.store.log.events(row.uid, after=Seq(seq - 1), limit=1)
        return stored.body

    run = ReplayedRun(machine=code_machine(machine), blob=service.values.blob, event=event, now=service.clock.now_ms())
    return await replay(run, program, tolerant=tolerant)
