"""Begin a run in memory: it decides its first steps before it is durable, and has no effects until then."""

from __future__ import annotations

from collections.abc import Callable

from weft.core import commands as c
from weft.core.ids import Epoch, RunId, RunUid
from weft.core.machine import Machine
from weft.errors import IdTaken, WeftError
from weft.ports.new_run import NewRun
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import PendingCommand
from weft.runtime.run.ports import RunPorts
from weft.runtime.runs import RunTable


class RunStarter:
    """Begins runs that this host owns from the start."""

    def __init__(self, runs: RunTable, ports: RunPorts, new_machine: Callable[[str, str, str, str], Machine]) -> None:
        """``new_machine`` takes a style, a workflow, its version and the run's uid."""
        self._runs = runs
        self._ports = ports
        self._new_machine = new_machine

    async def begin(self, start: c.StartRun, uid: RunUid | None = None) -> RunUid:
        """Create a run and decide its first steps. Returns when the run is durable. Raises IdTaken."""
        run_id = RunId(start.run_id)
        if run_id in self._runs.by_id:
            raise id_taken(run_id)
        ports = self._ports
        new = uid or RunUid(ports.new_id())
        machine = self._new_machine(start.style, start.workflow, start.version, new)
        actor = Actor(ports, new, run_id, Epoch(1), machine)
        self._runs.add(actor)
        actor.ready = actor.restored = True
        actor.begin_turn()
        actor.open_draft().create = NewRun(
            uid=actor.uid,
            id=run_id,
            workflow=start.workflow,
            version=start.version,
            style=start.style,
            created_at=actor.now_ms,
            owner=ports.host,
            attributes=start.attributes,
            priority=start.priority,
        )
        try:
            await PendingCommand(start).decide_with(actor.post)
        except WeftError:
            if not actor.machine.state.started:
                self._runs.remove(actor)
            raise
        return actor.uid


def id_taken(run_id: RunId) -> IdTaken:
    """Make the error for a start whose id belongs to another run."""
    return IdTaken(f"{run_id} exists already.", hint="Choose another id, or omit it for a new run.", run_id=run_id)
