"""The live tokens of a graph run, and how many of them each scope has. Pure."""

from __future__ import annotations

from heapq import heappush

from msgspec import Raw

from weft.core.events import ABSENT, EntryCancelled
from weft.core.graph.model import Edge, GraphModel, Node
from weft.core.graph.tokens import Frame, GraphState, Path, Seg, Slot, Token, innermost_branch, remember_work
from weft.core.ids import EntryId
from weft.core.run import accepted_work, lifecycle


def is_open(state: GraphState, number: int) -> bool:
    """Return whether a task or child has not ended, even if it was cancelled."""
    return number in state.tasks or number in state.parked or number in state.children


class Board:
    """Makes and removes tokens, counts them by scope, and records which scopes may be empty."""

    def __init__(self, graph: GraphModel, state: GraphState, arrival: Raw = ABSENT) -> None:
        self.graph = graph
        self.state = state
        self.arrival = arrival
        """The value that fan-ins receive from this move instead of the output."""
        self._empty: dict[str, Seg] = {}
        """The scopes that may be empty, by key."""
        self._order: list[tuple[int, int, int, str]] = []
        """The keys of these scopes as a heap, deepest first, then oldest first. Some may no longer be in ``_empty``."""
        self._skipping: list[tuple[Edge | Node, Path]] | None = None
        """The skips that are still to be passed on, last first. None if nothing is being skipped."""
        self._ending: list[int] = []
        """The stopped tasks that must end first."""
        self._opened: list[Frame] = []
        """The frames that this move opened and whose fan-ins have not been checked yet."""

    def make(self, token: Token) -> Token:
        self.state.tokens[token.id] = token
        self._count_token(token.path, 1, token.id)
        return token

    def consume(self, token: Token) -> None:
        del self.state.tokens[token.id]
        if token.task:
            self.state.by_task.pop(token.task, None)
        self._count_token(token.path, -1, token.id, parked=token.mode == "parked")

    def drop(self, token: Token) -> None:
        """Remove a token and stop its work."""
        number = token.task
        self.consume(token)
        self._stop_entry(number)

    def stop_work(self, token: Token) -> None:
        """Stop the work of a token because the run is over. The token stays for a retry.

        Work that cannot be stopped at once keeps its token, so that a retry does not repeat it if it still succeeds.
        """
        number = token.task
        if not number:
            return
        task = self.state.tasks.get(number) or self.state.parked.get(number)
        self._stop_entry(number)
        if not is_open(self.state, number):
            if task is not None:
                remember_work(self.state, token, task)
            token.task, token.mode = 0, "ready"
            self.state.by_task.pop(number, None)

    def _stop_entry(self, number: int) -> None:
        """Stop an entry. Work that can be undone must end first; its result is ignored."""
        state = self.state
        if number in state.parked:
            if accepted_work.drop_parked(state, number):
                state.gone.append(number)
            else:
                self._ending.append(number)
            return
        task = state.tasks.get(number)
        child = state.children.get(number)
        if child is not None and not child.cancelled:
            state.gone_children.append(child.uid)
        entry = EntryCancelled(entry=EntryId(number))
        if number and lifecycle.evolve_cancelled_entry(state, entry, task.place if task is not None else ""):
            state.gone.append(number)
        elif number in state.tasks:
            self._ending.append(number)

    def disarm(self, holder: Frame | Slot) -> None:
        """Stop the deadline of a join."""
        if holder.timer:
            self.state.deadlines.pop(holder.timer, None)
            if self.state.timers.pop(holder.timer, None) is not None:
                self.state.gone.append(holder.timer)
            holder.timer = 0

    def _count_token(self, path: Path, by: int, member: str, *, parked: bool = False) -> None:
        own = innermost_branch(path) if parked else None
        for seg in path:
            if seg.kind == "l":
                self._count_in_loop(seg, by)
                continue
            frame = self.state.frames.get(seg.id)
            branch = frame.branches.get(seg.n) if frame is not None else None
            if frame is None or branch is None:
                continue
            if by > 0:
                branch.members[member] = True
            else:
                branch.members.pop(member, None)
            if seg is not own:
                self._count_in_branch(frame, seg, by)

    def _count_in_loop(self, seg: Seg, by: int) -> None:
        run = self.state.loops.get(seg.id)
        if run is not None:
            run.live += by
            if run.live == 0:
                key = f"l{seg.id}"
                self._empty[key] = seg
                heappush(self._order, (-len(run.path), run.made, 0, key))

    def _count_in_branch(self, frame: Frame, seg: Seg, by: int) -> None:
        branch = frame.branches.get(seg.n)
        if branch is not None:
            branch.live += by
            if branch.live == 0:
                key = f"f{seg.id}.{seg.n}"
                self._empty[key] = seg
                heappush(self._order, (-len(frame.path), frame.made, seg.n, key))

    def _count_waiting_frame(self, path: Path, by: int) -> None:
        """Count a frame that waits for its fan-in in the scopes around it."""
        for seg in path:
            if seg.kind == "l":
                self._count_in_loop(seg, by)
            elif (frame := self.state.frames.get(seg.id)) is not None:
                self._count_in_branch(frame, seg, by)

    def _put_on_agenda(self, token: Token, mode: str) -> None:
        token.mode = mode  # type: ignore[assignment]
        self.state.agenda.append(token.id)
