"""Try every interleaving of the model, or some at random, and say how an invariant was broken."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.hot.model import Plan, World, first_world
from tests.hot.model_others import faults, other_moves, taker_moves
from tests.hot.model_owner import Moves, owner_moves
from tests.hot.model_stores import CAN_END, Off

NOTHING_OFF: Off = frozenset()
TOWARDS_THE_END = (
    "redis performs", "hears", "store performs", "read", "finds nothing", "commits an entry", "marks the WAL",
    "goes through instead", "drain", "claims its run again", "end", "claim", "seal", "gives up", "restart",
    "patience ends",
)  # fmt: skip
"""The moves that lead to the end, the next one first. None of them is a fault."""


class Search(NamedTuple):
    """What was found."""

    states: int
    is_whole: bool
    """Whether there is no other state."""
    breach: str = ""
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        how = "".join(f"\n  {number}. {label}" for number, label in enumerate(self.path, 1))
        return f"{self.states} states{'' if self.is_whole else ' and more'}: {self.breach or 'no breach'}{how}"


def moves(world: World, plan: Plan, off: Off) -> Moves:
    """Yield all that can happen next."""
    if world.breach:
        return
    for slot, host in enumerate(world.hosts):
        if host is not None:
            for label, after in (*owner_moves(world, slot, plan, off), *taker_moves(world, slot, off)):
                yield f"host {host.id}: {label}", after
    yield from other_moves(world, plan, off)
    if world.faults:
        yield from faults(world, plan, off)


def towards_the_end(world: World, plan: Plan, off: Off) -> World | None:
    """Return the next state on the way to the end, without a fault; None: there is none."""
    best, rank = None, len(TOWARDS_THE_END)
    for label, after in moves(world._replace(faults=0), plan, off):
        name = label.partition(": ")[2] or label
        place = next((i for i, known in enumerate(TOWARDS_THE_END) if name.startswith(known)), rank)
        if place < rank:
            best, rank = after, place
    return best


class Explorer:
    """Breadth first over the hashes of states."""

    def __init__(self, plan: Plan, off: Off = NOTHING_OFF) -> None:
        self.plan = plan
        self.off = off
        self.parents: dict[int, tuple[int, str]] = {}
        self.can_end: set[int] = set()

    def explore(self, states_max: int) -> Search:
        level = [self._begin()]
        while level:
            following: list[World] = []
            for world in level:
                here = hash(world)
                if breach := self.breach_of_end(world):
                    return self._found(here, breach)
                for label, after in moves(world, self.plan, self.off):
                    number = hash(after)
                    if number in self.parents:
                        continue
                    self.parents[number] = (here, label)
                    if after.breach:
                        return self._found(number, after.breach)
                    following.append(after)
                if len(self.parents) > states_max:
                    return Search(len(self.parents), is_whole=False)
            level = following
        return Search(len(self.parents), is_whole=True)

    def _begin(self) -> World:
        """Return the state after the moves with which the plan begins."""
        world = first_world(self.plan)
        self.parents[hash(world)] = (0, "")
        for wanted in self.plan.begins:
            before = hash(world)
            world = next(after for label, after in moves(world, self.plan, self.off) if label == wanted)
            self.parents[hash(world)] = (before, wanted)
        return world

    def breach_of_end(self, world: World) -> str:
        """Go to the end without another fault; return what is broken on the way, or that there is no way."""
        path = set[int]()
        at: World | None = world._replace(faults=0)
        while at is not None and not at.durable.is_over:
            number = hash(at)
            if number in self.can_end:
                break
            if number in path:
                return CAN_END
            path.add(number)
            before, at = at, towards_the_end(at, self.plan, self.off)
            if at is None:
                return before.breach or CAN_END
        self.can_end |= path
        return at.breach if at is not None else ""

    def _found(self, number: int, breach: str) -> Search:
        path: list[str] = []
        states = len(self.parents)
        while number:
            number, label = self.parents[number]
            path.append(label)
        return Search(states, is_whole=False, breach=breach, path=tuple(path[-2::-1]))


def explore(plan: Plan, off: Off = NOTHING_OFF, states_max: int = 1_000_000) -> Search:
    """Try every interleaving, up to so many states."""
    return Explorer(plan, off).explore(states_max)


def walk(plan: Plan, seed: int, off: Off = NOTHING_OFF, steps: int = 120) -> Search:
    """Try one interleaving, and then the way to the end."""
    random = Random(seed)
    world = first_world(plan)
    path: list[str] = []
    for _ in range(steps):
        possible = list(moves(world, plan, off))
        if not possible:
            break
        label, world = random.choice(possible)
        path.append(label)
        if world.breach:
            return Search(len(path), is_whole=False, breach=world.breach, path=tuple(path))
    breach = Explorer(plan, off).breach_of_end(world)
    return Search(len(path), is_whole=False, breach=breach, path=tuple(path))
