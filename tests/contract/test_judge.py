"""Every store allows and refuses what ``weft.stores.judge`` does, also where a SQL statement repeats its rules.

Random writes, most of them valid and the rest nearly so, go to one store. Before each of them the judge is asked what
the store must answer. A failure names its seed.
"""

import random
from collections import Counter
from typing import Any

import pytest

from tests.contract.kit import HERE, THERE, claim, commit, create, event, go, load, mail, new, send
from tests.scale import MARKS, scaled
from weft.core.ids import Epoch, Millis, RunId, RunUid, Seq
from weft.ports.store import OVER_STATUSES, Append, KeyRow, Loaded, Outcome, Release, RunRow, Sent, Store, StoredEvent
from weft.stores.judge import KeyFacts, is_current, judge_append, judge_create, judge_mail, judge_release, takes_slot

pytestmark = MARKS

WRITES = scaled(200, 1_000)
OPEN = ["running", "paused", "cancelling", "rolling_back", "held"]
KEYS = ["k1", "k2", "k3"]
MAIL = [f"m{number}" for number in range(8)]
SLOT = "singleton:order:k"


class Trial:
    """Puts random writes to a store and compares its answers with the judge's."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._dice = random.Random(seed)
        self._made = 0
        self._uids: list[RunUid] = []
        self._posted: set[tuple[RunUid, str]] = set()
        self.seen: Counter[str] = Counter()

    def write(self) -> None:
        if len(self._uids) < 3 or self._dice.random() < 0.2:
            self._create()
        else:
            self._dice.choice([self._commit, self._commit, self._release, self._claim, self._send, self._send])()

    def _create(self) -> None:
        """Make a run, sometimes with an id or a uid that another one has."""
        uid, name = RunUid(f"run-{self._made}"), RunId(f"id-{self._made}")
        if self._uids and self._dice.random() < 0.2:
            uid, name = self._dice.choice([(uid, RunId("id-0")), (RunUid("run-0"), name)])
        taken = self._row(uid) is not None or go(self._store.directory.find(name)) is not None
        owner = self._dice.choice([HERE, HERE, THERE, None])
        run = new(uid, id=name, owner=owner, slot=self._dice.choice([None, SLOT]))
        if owner is None:
            (outcome,) = create(self._store, run)
        else:
            first = Append(uid=uid, epoch=Epoch(1), seq=Seq(0), create=run, status="running", events=self._events(0))
            (outcome,) = commit(self._store, first, host=owner)
        self._expect(judge_create(taken=taken), outcome)
        if not taken:
            self._made += 1
            self._uids = [*self._uids, uid][-4:]

    def _commit(self) -> None:
        """Write to several runs, so that each append has its own outcome, or to one, which may take a shorter way."""
        before = [load(self._store, uid) for uid in self._dice.sample(self._uids, self._dice.choice([1, 1, 1, 3]))]
        host = before[0].row.owner or self._dice.choice([HERE, THERE])
        batch = [self._append(was) for was in before]
        if sum(takes_slot(one) for one in batch) > 1:  # one may take the slot of another in the same batch
            before, batch = before[:1], batch[:1]
        expected = [
            judge_append(was.row, one, host, self._keys(one, was), is_slot_taken=self._is_slot_taken(one, was))
            for one, was in zip(batch, before, strict=True)
        ]
        outcomes = commit(self._store, *batch, host=host)
        for one, was, judged, outcome in zip(batch, before, expected, outcomes, strict=True):
            self._expect(judged, outcome)
            now = load(self._store, one.uid)
            if outcome is Outcome.ACCEPTED:
                assert list(now.events) == [*was.events, *one.events]
            else:
                assert now == was

    def _append(self, was: Loaded) -> Append:
        row = was.row
        seq = Seq(max(0, row.seq + self._near()))
        fields: dict[str, Any] = {}
        if self._dice.random() < 0.3:
            fields["status"] = self._dice.choice([*OPEN, *OVER_STATUSES])
        if row.owner is None and self._dice.random() < 0.8:
            fields["reopen"] = Millis(self._dice.randint(0, 9))
            fields["status"] = self._dice.choice(["running", row.status])
        if self._dice.random() < 0.3:
            waiting = [piece.id for piece in was.inbox]
            fields["taken"] = self._dice.choice([waiting, waiting, waiting[:1], MAIL[:1]])
        if self._dice.random() < 0.3:
            keys = self._dice.sample(KEYS, self._dice.choice([1, 1, 2]))
            fields["keys"] = [KeyRow(key, self._dice.choice("ddde"), Seq(seq + 1)) for key in keys]
        if self._dice.random() < 0.2:
            fields["idle_until"] = self._dice.choice([None, Millis(5)])
        return Append(
            uid=row.uid,
            epoch=Epoch(row.epoch + self._near()),
            seq=seq,
            events=self._events(seq),
            mail_taken=max(0, row.mail + self._dice.choice([0, 0, 1, -1])),
            **fields,
        )

    def _keys(self, append: Append, was: Loaded) -> KeyFacts:
        known = (go(self._store.directory.key(append.uid, row.key)) for row in append.keys)
        return KeyFacts(
            {row.key: row for row in known if row is not None},
            {piece.key for piece in was.inbox if piece.id in append.taken},
        )

    def _is_slot_taken(self, append: Append, was: Loaded) -> bool:
        others = go(self._store.starts.with_slot(SLOT))
        return takes_slot(append) and was.row.slot is not None and any(uid != append.uid for uid in others)

    def _release(self) -> None:
        releases = [self._released(uid) for uid in self._dice.sample(self._uids, self._dice.choice([1, 1, 3]))]
        expected = [judge_release(self._row(one.uid), one) for one in releases]
        for judged, outcome in zip(expected, go(self._store.log.release(releases)), strict=True):
            self._expect(judged, outcome)

    def _released(self, uid: RunUid) -> Release:
        row = self._existing(uid)
        return Release(
            uid=uid,
            epoch=Epoch(row.epoch + self._near()),
            seq=Seq(row.seq + self._near()),
            mail_taken=row.mail + self._near(),
            wake_at=None,
        )

    def _claim(self) -> None:
        uid = self._dice.choice(self._uids)
        row = self._existing(uid)
        epoch = row.epoch + self._near()
        claimed = claim(self._store, uid, epoch=epoch, host=self._dice.choice([HERE, THERE]))
        self._expect(is_current(row, Epoch(epoch)), bool(claimed))

    def _send(self) -> None:
        uid = self._dice.choice([*self._uids, RunUid("nobody")])
        name = self._dice.choice(MAIL)
        key = self._dice.choice([None, *KEYS])
        piece = mail(name, uid, key=key, digest=self._dice.choice("dde") if key else "")
        row = self._row(uid)
        known = None if key is None or row is None else go(self._store.directory.key(uid, key))
        (sent,) = send(self._store, piece)
        self._expect(judge_mail(row, piece, known, posted=(uid, name) in self._posted), sent)
        if sent == Sent.ACCEPTED:
            self._posted.add((uid, name))

    def _events(self, seq: int) -> list[StoredEvent]:
        return [event(seq + n) for n in range(1, 1 + self._dice.choice([0, 1, 1, 1, 2, 6]))]

    def _near(self) -> int:
        return self._dice.choice([0] * 12 + [1, -1])

    def _row(self, uid: RunUid) -> RunRow | None:
        return go(self._store.directory.row(uid))

    def _existing(self, uid: RunUid) -> RunRow:
        row = self._row(uid)
        assert row is not None
        return row

    def _expect(self, judged: object, answer: object) -> None:
        self.seen[str(answer)] += 1
        assert answer == judged


EVERY_ANSWER = {*Outcome, *Sent, "True", "False"}


@pytest.mark.parametrize("seed", range(scaled(1, 2, soak=100)))
def test_a_store_answers_as_the_judge_does(store: Store, seed: int) -> None:
    trial = Trial(store, seed)

    for _ in range(WRITES):
        trial.write()
    for _ in range(WRITES * 9):
        if trial.seen.keys() >= EVERY_ANSWER:
            break
        trial.write()

    assert trial.seen.keys() >= EVERY_ANSWER, trial.seen
