"""What goes wrong in one world: each seed draws which kinds of faults there are at all, and how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import msgspec

from tests.sim.workflows import CODE, Cast
from weft.runtime.settings import Settings
from weft.testing.faults import Rates

SHARED = 0.2
"""How many worlds have steps that only one host has."""


@dataclass
class Moods:
    """What is done to step bodies, per performance."""

    throw_before: float = 0.0
    throw_after: float = 0.0
    hang: float = 0.0
    slow: float = 0.0
    die_before: float = 0.0
    die_after: float = 0.0

    def draw(self, luck: float) -> str:
        for name in ("throw_before", "throw_after", "hang", "slow", "die_before", "die_after"):
            rate = getattr(self, name)
            if luck < rate:
                return name
            luck -= rate
        return ""


@dataclass
class Swarm:
    """One seed's.

    A kind that is off is off for the whole world, so that rare combinations are not drowned by common ones.
    """

    seed: int
    random: Random
    rates: Rates = field(default_factory=Rates)
    moods: Moods = field(default_factory=Moods)
    seen: Counter[str] = field(default_factory=Counter)
    boundary: float = 0.0
    """How often a process dies at a boundary."""
    kills: float = 0.0
    freezes: float = 0.0
    jumps: float = 0.0
    stops: float = 0.0
    """Each per second of the whole cluster."""
    lacks: tuple[str, ...] = ()
    """Steps that only the first host has."""
    skew_ms: int = 0
    hosts: int = 2
    runs: int = 8
    seconds: float = 20.0
    """How long things go wrong."""
    settings: Settings = field(default_factory=Settings)

    full: tuple[tuple[float, float], ...] = ()
    """When the store has no room, and takes nothing: from, to."""

    def is_full(self, now: float) -> bool:
        return any(begin <= now < end for begin, end in self.full)

    def jump_ms(self, luck: Random) -> int:
        """By how much a clock is set wrong this time: mostly little, sometimes by an hour."""
        return luck.choice((-1, 1)) * luck.choice((1_000, 1_000, 5_000, 60_000, 60_000, 3_600_000))

    def heal(self) -> None:
        self.rates = Rates()
        self.moods = Moods()
        self.boundary = 0.0
        self.full = ()


def draw(seed: int, cast: Cast = CODE) -> Swarm:
    """The swarm of a seed."""
    r = Random(f"swarm-{seed}")

    def maybe(rate: float, chance: float = 0.5) -> float:
        return rate * r.random() if r.random() < chance else 0.0

    swarm = Swarm(seed, Random(f"faults-{seed}"))
    swarm.rates = Rates(
        before=maybe(0.12), after=maybe(0.12), late=maybe(0.06), slow=maybe(0.5), die=maybe(0.015, 0.3),
        late_seconds_max=r.choice((0.5, 5.0)), slow_seconds_max=r.choice((0.05, 1.0)),
    )  # fmt: skip
    swarm.moods = Moods(
        throw_before=maybe(0.2), throw_after=maybe(0.15), hang=maybe(0.1), slow=maybe(0.4), die_before=maybe(0.03, 0.3),
        die_after=maybe(0.03, 0.3),
    )  # fmt: skip
    swarm.boundary = maybe(0.01, 0.3)
    swarm.kills = maybe(0.25)
    swarm.freezes = maybe(0.2)
    swarm.jumps = maybe(0.3, 0.3)
    swarm.stops = maybe(0.1, 0.3)
    swarm.skew_ms = r.choice((0, 0, 0, 2_000, 600_000)) if r.random() < 0.5 else 0
    swarm.hosts = r.choice((1, 2, 2, 3))
    swarm.lacks = r.choice(cast.lacks) if r.random() < SHARED else ()
    swarm.runs = r.randint(*cast.runs)
    swarm.seconds = r.choice((8.0, 15.0, 25.0))
    swarm.settings = Settings(
        lease_seconds=r.choice((2.0, 4.0)),
        poll_seconds=1.5,
        scan_seconds=3.0,
        idle_seconds=r.choice((0.5, 3.0, 10.0)),
        resident_max=r.choice((3, 5_000, 5_000)),
        slots=r.choice((2, 1_000, 1_000)),
        look_seconds=2.0,
        drain_seconds=1.0,
        short_path=seed % 4 != 0,
    )
    if cast.cache_bytes and r.random() < 0.5:
        swarm.settings = msgspec.structs.replace(swarm.settings, blob_cache_bytes=cast.cache_bytes)
    if cast.fills_up:
        swarm.full = _full(Random(f"full-{seed}"), swarm.seconds)
    return swarm


def _full(r: Random, seconds: float) -> tuple[tuple[float, float], ...]:
    """In half of the worlds the store is full once or twice, for a moment or for longer than a lease."""
    if r.random() < 0.5:
        return ()
    begins = [r.uniform(0, seconds) for _ in range(r.randint(1, 2))]
    return tuple((begin, begin + r.choice((0.3, 2.0, 9.0))) for begin in begins)
