"""A model of the hot path: one run, two hosts, a durable store and a Redis, small enough to try every interleaving.

It knows nothing of the implementation. States are tuples, a move leads from one state to the next, and every rule that
a loss was once blamed on can be switched off by its name, to see that the invariants notice.
"""

from __future__ import annotations

from typing import NamedTuple

SEALED = -1

RULES = {
    "H5 command": "a command is answered when the durable store has it",
    "H5 handing out": "irreversible work begins when the durable store has its hand-out",
    "H5 outcome": "the outcome of irreversible work is recorded in the durable store",
    "H6": "a task leaves the process when its tail is drained",
    "H7": "events are shown outside when they are drained",
    "H12 seal": "a sealed WAL takes no entry",
    "H12 gap": "a WAL takes only the entry after its last",
    "H14": "a WAL that broke is never written again",
    "H15": "a run is hot only if its row names the WAL in use",
    "H16 tail": "a run is attached only when nothing of it is outside the durable store",
    "H16 current": "a run is attached only to the WAL that its host has now",
    "H18": "a through append goes behind the tail of its run",
    "H19 epoch": "a drain without an answer is sent again under the same epoch",
    "H19 number": "the number of the row tells how much of a drain is there already",
    "H20": "a host drains its run before it claims it again",
    "H20 hop": "a claim of the own run waits for the hop that is under way, and holds back the next one",
    "H21": "a run is drained before it is released",
    "H22": "a drain under way counts as not drained",
    "H25": "a run is claimed from another host only when its WAL is drained",
    "H26 seal": "who takes over seals a WAL before reading it",
    "H26 epoch": "who takes over commits under the epoch of the entry",
    "H26 mark": "who takes over marks a WAL drained after committing what it holds",
    "H27": "an entry behind a hole is lost, and not moved up",
    "H29": "a WAL that cannot be read is given up after a while",
    "H34 taking over": "a WAL is missing only if the Redis that lacks it is the deployment's",
    "H34 opening": "a WAL is opened only in the deployment's Redis",
}
"""What can be switched off."""

FAULTS = frozenset({"death", "suspicion", "unanswered", "away", "other", "emptied", "restored", "rewound", "damaged"})
"""What can go wrong. ``restored`` cuts the connections, as a restart does; ``rewound`` does not, as a demotion may."""


class Plan(NamedTuple):
    """How large a world is: what may happen in it, and how often."""

    kinds: frozenset[str] = frozenset({"hop"})
    """What the run does: hop, command, irreversible, task, release; claim: two callers of its host claim it at once."""
    events: int = 2
    """How many events are decided at most, besides the end."""
    faults: int = 1
    """How many faults there are at most, of all kinds together."""
    of: frozenset[str] = FAULTS
    wals: int = 2
    attached: bool = True
    """Whether the first host has a WAL, and the run is attached to it."""
    restarts: bool = True
    """Whether a dead host comes back while another lives."""
    begins: tuple[str, ...] = ()
    """The first moves, where what matters lies too deep to be found from the beginning."""


class Event(NamedTuple):
    """One event, as its maker decided it; two that differ in anything are two."""

    kind: str
    seq: int
    epoch: int
    host: int
    of: Event | None = None
    """The task that a result belongs to, as whoever performed it was told."""


class Durable(NamedTuple):
    """The durable store: the row of the run, its log, the WALs."""

    epoch: int
    owner: int
    """0: nobody."""
    wal: int
    """``runs.wal``; 0: none."""
    log: tuple[Event, ...]
    wals: tuple[tuple[int, bool], ...]
    """By number: whose, and whether it is drained."""
    grants: tuple[int, ...]
    """To whom each epoch was granted."""
    rows: tuple[Event, ...] = ()
    """Tasks that others may perform."""
    mail: tuple[Event, ...] = ()
    """Results that came, each with its task."""

    def wal_of(self, host: int) -> int:
        """Return ``hosts.wal``: the newest WAL of a host, or 0."""
        return max((number for number, (whose, _) in enumerate(self.wals, 1) if whose == host), default=0)

    def is_drained(self, wal: int) -> bool:
        return not wal or self.wals[wal - 1][1]

    @property
    def is_over(self) -> bool:
        return bool(self.log) and self.log[-1].kind == "end"


class ModelWal(NamedTuple):
    """The two keys of a WAL."""

    head: int
    entries: tuple[tuple[int, Event | None], ...]
    """Number and content; None: the content is damaged."""


WalKeys = tuple[ModelWal | None, ...]
"""By number; None: the keys are not there."""


class Server(NamedTuple):
    """Redis."""

    wals: WalKeys
    saved: WalKeys = ()
    """An earlier state, to which it may fall back. Any state may become this, so this may be any."""
    has_saved: bool = False
    kept: WalKeys = ()
    """What the right server holds while another one stands in its place."""
    mode: str = "up"
    """up, away, or other: an empty server that is not the deployment's."""
    long: bool = False
    """Whether it has been away for longer than anybody waits."""

    def keys(self, wal: int) -> ModelWal | None:
        return self.wals[wal - 1] if wal <= len(self.wals) else None

    def with_keys(self, wal: int, keys: ModelWal | None) -> Server:
        wals = self.wals + (None,) * (wal - len(self.wals))
        return self._replace(wals=(*wals[: wal - 1], keys, *wals[wal:]))


class HotAppend(NamedTuple):
    """A request to Redis: one entry."""

    wal: int
    n: int
    event: Event
    trim: int
    """Entries below it may go."""


class Request(NamedTuple):
    """A request to the durable store: a commit, or an attachment."""

    kind: str
    host: int
    epoch: int
    seq: int = 0
    events: tuple[Event, ...] = ()
    through: bool = False
    """Whether the last of the events is no tail, but waits for the answer."""
    wal: int = 0


class Takeover(NamedTuple):
    """How far a host has come with the WAL of another."""

    wal: int
    stage: str
    entries: tuple[tuple[int, Event | None], ...] = ()


class Process(NamedTuple):
    """The memory of a host."""

    id: int
    wal: int = 0
    is_whole: bool = False
    """Whether the WAL has not broken."""
    n: int = 0
    """Entries of the WAL that were acknowledged."""
    epoch: int = 0
    """0: it does not have the run."""
    log: tuple[Event, ...] = ()
    """All that is acknowledged."""
    known: int = 0
    """How much of the log is known to be in the durable store; the rest is the tail."""
    numbers: tuple[int, ...] = ()
    """The entries that hold the tail."""
    is_attached: bool = False
    pending: Event | None = None
    """What was not acknowledged by the WAL and goes through instead."""
    hot: tuple[HotAppend, str] | None = None
    """Under way in the hot lane, and the answer once there is one."""
    slow: tuple[Request, tuple[str, int] | None] | None = None
    """Under way in the other lane, and the answer: the outcome and the number in the row."""
    is_unsure: bool = False
    """Whether it has to claim its run again, because nobody answered, or because a second caller wants it."""
    takeover: Takeover | None = None
    has_begun: bool = False
    """Whether irreversible work is in its hands."""

    @property
    def tail(self) -> tuple[Event, ...]:
        return self.log[self.known :]

    @property
    def is_busy(self) -> bool:
        """Whether an append of the run is under way, or has to be."""
        return self.hot is not None or self.is_unsure or (self.slow is not None and self.slow[0].through)

    def without_run(self) -> Process:
        return self._replace(
            epoch=0, log=(), known=0, numbers=(), is_attached=False, pending=None, is_unsure=False, has_begun=False
        )


class World(NamedTuple):
    """One state."""

    durable: Durable
    server: Server
    hosts: tuple[Process | None, ...]
    late: frozenset[HotAppend | Request]
    """Requests that nobody waits for any more, and that may still be performed."""
    acked: frozenset[Event]
    """Acknowledged, and not in the durable store."""
    gone: frozenset[Event]
    """What Redis has lost of these, or of what it may still acknowledge."""
    faulty: frozenset[int]
    """WALs of which Redis has lost the seal, or the way to later entries."""
    suspected: frozenset[int]
    begun: int
    """How often irreversible work began."""
    born: int
    events: int
    faults: int
    """How many of each are left."""
    breach: str = ""
    """The invariant that is broken."""

    def with_host(self, slot: int, host: Process | None) -> World:
        return self._replace(hosts=(*self.hosts[:slot], host, *self.hosts[slot + 1 :]))

    def is_alive(self, host: int) -> bool:
        return any(process is not None and process.id == host for process in self.hosts)


def first_world(plan: Plan) -> World:
    """The first host has the run; nothing has happened yet."""
    number = 1 if plan.attached else 0
    first = Process(1, wal=number, is_whole=plan.attached, epoch=1, is_attached=plan.attached)
    return World(
        durable=Durable(1, 1, number, (), ((1, False),) * number, (1,)),
        server=Server((ModelWal(0, ()),) * number),
        hosts=(first, Process(2)),
        late=frozenset(),
        acked=frozenset(),
        gone=frozenset(),
        faulty=frozenset(),
        suspected=frozenset(),
        begun=0,
        born=2,
        events=plan.events,
        faults=plan.faults,
    )
