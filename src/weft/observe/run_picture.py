"""The picture of a run: its graph with its tokens, or its plan with its steps."""

from __future__ import annotations

from weft.core import events as e
from weft.core.goal.machine import GoalMachine
from weft.core.graph.tokens import GraphState
from weft.observe.pictures import Picture, edges_taken, picture_of_graph, picture_of_plan
from weft.observe.runs import read_run
from weft.ports.store import RunRow
from weft.runtime.door import Door


async def read_picture(door: Door, row: RunRow) -> Picture | None:
    """Return the picture of a graph run or of a goal run; None for code. Raises NotFound, RunUnreadable."""
    if row.style == "goal":
        machine = await read_run(door, row) if row.seq else None
        if not isinstance(machine, GoalMachine) or machine.plan is None:
            return None
        return picture_of_plan(machine.plan, machine.state, title=row.workflow)
    state = (await read_run(door, row)).state if row.seq and row.style == "graph" else None
    program = await door.program(row)
    if program is None:
        return None
    taken: set[str] = set()
    async for stored in door.events(row):
        taken |= edges_taken([e.decode(stored.body)])
    return picture_of_graph(program.graph, state if isinstance(state, GraphState) else None, taken)
