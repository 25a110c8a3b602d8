"""The worlds in which the model is tried: small ones for every rule that can be switched off, and whole ones."""

from __future__ import annotations

from tests.hot.model import FAULTS, Plan
from tests.hot.model_stores import (
    ANSWERED_STAYS,
    BEGUN_ONCE,
    CAN_END,
    NO_LOSS,
    ONE_HISTORY,
    OUTCOME_STAYS,
    OWN_TASK,
    SHOWN_STAYS,
)


def plan(kinds: str, *of: str, events: int = 1, wals: int = 1, attached: bool = True) -> Plan:
    """A world with so many of these faults as there are kinds of them."""
    return Plan(frozenset(kinds.split()), events, len(of), frozenset(of), wals, attached, restarts=False)


ATTACHED_LATE = (
    "host 1: opens a WAL", "host 1: attach", "no answer from the store", "redis is away", "redis is back",
    "host 1: marks its WAL", "host 1: opens a WAL", "host 1: attach",
)  # fmt: skip
"""A request that attaches the run to the first WAL is still under way when the host has a second one."""

CAUGHT: dict[str, tuple[Plan, str]] = {
    "H5 command": (plan("command", "death", "emptied"), ANSWERED_STAYS),
    "H5 handing out": (plan("irreversible", "death", "emptied", events=2), BEGUN_ONCE),
    "H5 outcome": (plan("irreversible", "death", "emptied", events=2), OUTCOME_STAYS),
    "H6": (plan("task", "death", "restored", events=3), OWN_TASK),
    "H7": (plan("hop", "death", "emptied"), SHOWN_STAYS),
    "H12 seal": (plan("hop", "suspicion"), NO_LOSS),
    "H12 gap": (plan("hop", "rewound", "death", events=2), NO_LOSS),
    "H14": (plan("hop", "suspicion", "restored"), NO_LOSS),
    "H15": (plan("hop", "death", attached=False), NO_LOSS),
    "H16 tail": (plan("hop", "away", "death", wals=2), NO_LOSS),
    "H16 current": (
        plan("hop", "unanswered", "away", "death", wals=2, attached=False)._replace(begins=ATTACHED_LATE),
        NO_LOSS,
    ),
    "H18": (plan("hop"), ONE_HISTORY),
    "H19 epoch": (plan("hop", "unanswered", "death"), NO_LOSS),
    "H19 number": (plan("hop", "unanswered"), ONE_HISTORY),
    "H20": (plan("hop", "unanswered", "death"), NO_LOSS),
    "H20 hop": (plan("hop claim", events=2), NO_LOSS),
    "H21": (plan("hop release", events=2), NO_LOSS),
    "H22": (plan("hop", "death", events=2), NO_LOSS),
    "H25": (plan("hop", "death"), NO_LOSS),
    "H26 seal": (plan("hop", "suspicion"), NO_LOSS),
    "H26 epoch": (plan("hop", "death", "restored")._replace(restarts=True), NO_LOSS),
    "H26 mark": (plan("hop", "death")._replace(restarts=True), NO_LOSS),
    "H27": (plan("hop", "damaged", "death", events=2), ONE_HISTORY),
    "H29": (plan("hop", "away", "death"), CAN_END),
    "H34 taking over": (plan("hop", "other", "death"), NO_LOSS),
    "H34 opening": (plan("hop", "other", "death", attached=False), NO_LOSS),
}
"""For every rule: the world that shows what it is for, and the invariant that notices."""


SMALL = Plan(events=1, faults=1, wals=2)
"""All of it is tried in every run of the tests."""

LARGE = {
    "two hops and a fault": Plan(events=2, faults=1, wals=2),
    "a hop, a command and a fault": Plan(frozenset({"hop", "command"}), events=2, faults=1, wals=2),
    "a hop and two deaths or silences": Plan(events=1, faults=2, of=frozenset({"death", "unanswered"}), wals=1),
    "a hop, a suspicion and a loss": Plan(
        events=1, faults=2, of=frozenset({"suspicion", "restored", "emptied"}), wals=1
    ),
    "a hop, a death and a redis that fails": Plan(
        events=1, faults=2, of=FAULTS - {"suspicion", "unanswered"}, wals=1, restarts=False
    ),
    "irreversible work, a death and a loss": Plan(
        frozenset({"irreversible"}), events=2, faults=2, of=frozenset({"death", "restored"}), wals=1
    ),
    "a task, a death and a loss": Plan(
        frozenset({"task"}), events=3, faults=2, of=frozenset({"death", "emptied"}), wals=1, restarts=False
    ),
    "a hop, a release and a fault": Plan(frozenset({"hop", "release"}), events=3, faults=1, wals=2),
}
"""Each of them whole takes minutes."""

WILD = Plan(frozenset({"hop", "command", "irreversible", "task", "release", "claim"}), events=8, faults=5, wals=5)
"""Too large to be tried whole: it is walked at random."""
