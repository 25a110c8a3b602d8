"""Limit the depth and size of trees of runs, as one host sees them.

A host knows the open runs that it started, loaded or saw ending, by their root. It asks the store for the others (runs
of other hosts, runs that are not in memory): once for a tree that began on another host, and again whenever a twentieth
of the limit was started here. So starting a child needs no count. Several hosts together can exceed the limit by a
twentieth for each host, plus the runs that they start while they count.

Rules: docs/internals/engine.md#rule-32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Raw

from weft.core.ids import RunUid
from weft.core.run.children import AGENTS_MAX, agent_depth_of, agent_too_deep, depth_of, root_of
from weft.core.run.env import allow_any_child
from weft.core.run.state import State
from weft.errors import LimitExceeded, RunCancelled
from weft.ports.store import Directory
from weft.runtime.background_tasks import BackgroundTasks
from weft.runtime.retries import RetryUntilAvailable
from weft.runtime.run.start import STOPPED_TEXT
from weft.runtime.runs import RunTable

STOPPED = ("cancelling", "rolling_back", "cancelled")
"""A root in one of these statuses is stopping its tree: each run tells its children to stop."""
FULL_SECONDS = 1.0
"""How long a full tree is not counted again."""


class TreeLimits(Protocol):
    """The limits of a tree."""

    @property
    def tree_depth_max(self) -> int: ...

    @property
    def tree_runs_max(self) -> int: ...


class Tree:
    """The open runs below one root."""

    __slots__ = ("counted", "counted_at", "counted_full", "counting", "seen", "stopped", "unseen")

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.unseen = 0
        """The number of open runs that this host has not seen, minus those that it has not seen ending."""
        self.counted_at = 0
        """How many runs were open when the store was last asked."""
        self.counted = False
        """Whether the store was asked, or need not be asked."""
        self.counting = False
        """Whether the store is being asked."""
        self.counted_full = False
        """Whether the store was asked a moment ago because the tree was full."""
        self.stopped = False

    @property
    def open(self) -> int:
        return len(self.seen) + self.unseen


class Trees:
    """The trees that the runs of one host belong to."""

    def __init__(
        self,
        runs: RunTable,
        directory: Directory,
        background: BackgroundTasks,
        retry: RetryUntilAvailable,
        limits: TreeLimits,
    ) -> None:
        self._runs = runs
        self._directory = directory
        self._background = background
        self._retry_until_available = retry
        self._limits = limits
        self._trees: dict[str, Tree] = {}
        self.permits: Callable[[State, str, Raw], None] = allow_any_child
        """Checks whether the policy permits a child run of a workflow. Raises NotAllowed."""
        self.is_agent: Callable[[str], bool] = lambda _: False
        """Returns whether the runs of a workflow are runs of an agent."""

    # --- what happens to runs -------------------------------------------------------------------------------------

    def opened(self, root: str, uid: str) -> None:
        """Record that a run below this root was started here."""
        self._trees.setdefault(root, Tree()).seen.add(uid)

    def loaded(self, state: State) -> None:
        """Record that a run was loaded here. It is open, and so are the children that it waits for."""
        found = [child.uid for child in state.children.values()]
        if state.parent is not None:
            found.append(state.uid)
        if found:
            self._trees.setdefault(root_of(state), Tree()).seen.update(found)

    def closed(self, state: State) -> None:
        """Record that a run has ended here."""
        tree = self._trees.get(root_of(state)) if self._trees else None
        if tree is None:
            return
        tree.seen.discard(state.uid)
        if state.parent is None or not tree.seen:
            del self._trees[root_of(state)]

    # --- checks ---------------------------------------------------------------------------------------------------

    def check(self, state: State, workflow: str, given: Raw) -> None:
        """Check whether this run may start a child run with this input.

        Raises LimitExceeded, RunCancelled, NotAllowed.
        """
        self.permits(state, workflow, given)
        settings = self._limits
        root = root_of(state)
        tree = self._get_or_add_tree(root)
        if self._is_tree_stopped(root, tree):
            raise RunCancelled(
                f"{state.run_id} cannot start a run: the run at the root of its tree {STOPPED_TEXT}.",
                run_id=state.run_id,
            )
        if depth_of(state) >= settings.tree_depth_max:
            raise _too_deep(state, settings.tree_depth_max)
        if agent_depth_of(state) >= AGENTS_MAX and self.is_agent(workflow):
            raise agent_too_deep(workflow)
        # The root counts as well.
        if tree.open + 1 >= settings.tree_runs_max:
            self._count_full_tree(root, tree)
            raise _too_many(state, settings.tree_runs_max)
        if tree.open - tree.counted_at > settings.tree_runs_max // 20:
            self._count_in_background(root, tree)

    async def is_stopped(self, root: str) -> bool:
        """Return whether the run at the root is cancelled or rolls back, even if another host owns it."""
        state = self._runs.state_of(RunUid(root))
        if state is not None:
            return _stops_its_tree(state)
        row = await self._retry_until_available(lambda: self._directory.row(RunUid(root)))
        return row is not None and row.status in STOPPED

    def _get_or_add_tree(self, root: str) -> Tree:
        tree = self._trees.setdefault(root, Tree())
        if not tree.counted:
            tree.counted = True
            if not self._began_here(root):
                self._count_in_background(root, tree)
        return tree

    def _began_here(self, root: str) -> bool:
        actor = self._runs.actors.get(RunUid(root))
        return actor is not None and actor.epoch == 1

    def _is_tree_stopped(self, root: str, tree: Tree) -> bool:
        state = self._runs.state_of(RunUid(root))
        return tree.stopped if state is None else _stops_its_tree(state)

    def _count_full_tree(self, root: str, tree: Tree) -> None:
        """Count a full tree, but not for each start that it refuses: a count visits all its runs."""
        if tree.counted_full:
            return
        tree.counted_full = True

        def allow_another() -> None:
            tree.counted_full = False

        self._background.call_later(FULL_SECONDS, allow_another)
        self._count_in_background(root, tree)

    def _count_in_background(self, root: str, tree: Tree) -> None:
        if not tree.counting:
            tree.counting = True
            tree.counted_at = tree.open
            self._background.spawn(self._count(root, tree))

    async def _count(self, root: str, tree: Tree) -> None:
        try:
            await self._retry_until_available(lambda: self._read_counts(root, tree))
        finally:
            tree.counting = False

    async def _read_counts(self, root: str, tree: Tree) -> None:
        directory = self._directory
        counts = await directory.counts(RunUid(root), limit=self._limits.tree_runs_max)
        found = sum(counts.values())
        tree.unseen = found - len(tree.seen)
        tree.counted_at = tree.open
        row = await directory.row(RunUid(root))
        tree.stopped = row is not None and row.status in STOPPED


def _stops_its_tree(state: State) -> bool:
    return state.cancelled is not None or state.status in STOPPED


def _too_deep(state: State, limit: int) -> LimitExceeded:
    return LimitExceeded(
        f"{state.run_id} is at depth {limit} of its tree, the limit; it cannot start a run below it.",
        hint="Check for a workflow that starts itself endlessly. App(tree_depth=…) sets the limit.",
        code="limit.tree_depth",
    )


def _too_many(state: State, limit: int) -> LimitExceeded:
    return LimitExceeded(
        f"The tree of {state.run_id} has {limit} open runs; no more can start.",
        hint="Wait for some to end before starting others. App(tree_runs=…) sets the limit.",
        code="limit.tree_runs",
    )
