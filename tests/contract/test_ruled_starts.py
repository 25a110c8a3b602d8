"""Starts of workflows that have a rule: one open run per key, a start after quiet, one run for many inputs."""

import asyncio
from typing import Any

from tests.contract.kit import HERE, append, claim, commit, create, finish, go, new, row
from weft.core.ids import Epoch, Millis, RunUid
from weft.core.start_rules import StartRule, Then, slot_of
from weft.ports.starts import RuledStart, StartAnswer, StartOutcome
from weft.ports.store import Mail, Outcome, Store
from weft.ports.tasks import TaskOffer

SINGLETON = StartRule(kind="singleton")
DEBOUNCE = StartRule(kind="debounce", quiet_ms=100, at_most_ms=250)
BATCH = StartRule(kind="batch", size=3, wait_ms=100, items="items")
NAMED = [("order", "1"), ("order", "")]
CANCEL = b'{"do":"cancel_run","reason":"replaced"}'


def singleton(then: Then) -> StartRule:
    return StartRule(kind="singleton", then=then)


def start(store: Store, uid: str, rule: StartRule, *, key: str = "k", at: int = 1_000, **fields: Any) -> StartAnswer:
    """Start a run at a time, with the input ``<uid>``."""
    inputs = fields.pop("inputs", 1 if rule.kind == "batch" else 0)
    options = {name: fields.pop(name) for name in ("stored", "chosen", "digest") if name in fields}
    wait_ms = rule.wait_of(inputs)
    made = new(
        uid,
        owner=None,
        created_at=Millis(at),
        start=b'{"input":"%s"}' % uid.encode(),
        wake_at=Millis(at + wait_ms) if wait_ms else None,
        slot=slot_of(rule, "order", key),
        inputs=inputs,
        **fields,
    )
    return go(store.starts.start(RuledStart(new=made, rule=rule, cancel=CANCEL, **options)))


def letters(store: Store, uid: str) -> list[Mail]:
    return list(go(store.log.inbox(RunUid(uid))))


def claimable(store: Store, now: int = 1_000, limit: int = 10) -> list[str]:
    rows = go(store.directory.claimable(NAMED, dead=(), now=Millis(now), limit=limit))
    return [found.uid for found in rows]


def begin(store: Store, uid: str) -> None:
    """Let a host claim a run and write its first event."""
    claim(store, uid, epoch=row(store, uid).epoch)
    taken = [mail.id for mail in letters(store, uid)]
    assert commit(store, append(uid, taken=taken, status="running")) == [Outcome.ACCEPTED]


# --- the stored rules -------------------------------------------------------------------------------------------------


def test_a_stored_rule_is_found_by_the_name_of_its_workflow(store: Store) -> None:
    go(store.starts.set_rules({"order": b'{"kind":"singleton"}', "other": b"{}"}))
    go(store.starts.set_rules({"order": b'{"kind":"batch"}', "other": None}))

    assert go(store.starts.rules()) == {"order": b'{"kind":"batch"}'}
    assert go(store.starts.rule("order")) == b'{"kind":"batch"}'
    assert go(store.starts.rule("other")) is None


def test_a_start_that_was_judged_by_another_rule_than_the_stored_one_writes_nothing(store: Store) -> None:
    go(store.starts.set_rules({"order": b"new"}))

    assert start(store, "a", SINGLETON, stored=b"old").outcome is StartOutcome.RULE_CHANGED
    assert go(store.directory.row(RunUid("a"))) is None
    assert start(store, "a", SINGLETON, stored=b"new").outcome is StartOutcome.CREATED


# --- singletons -------------------------------------------------------------------------------------------------------


def test_the_first_start_with_a_key_creates_a_pending_run(store: Store) -> None:
    answer = start(store, "a", SINGLETON)

    made = row(store, "a")
    assert (answer.outcome, answer.uid, answer.id) == (StartOutcome.CREATED, "a", "id of a")
    assert (made.status, made.slot, made.seq) == ("pending", "singleton:order:k", 0)
    assert claimable(store) == ["a"]


def test_a_second_start_attaches_to_the_open_run(store: Store) -> None:
    start(store, "a", SINGLETON)
    begin(store, "a")

    answer = start(store, "b", SINGLETON)

    assert (answer.outcome, answer.uid, answer.id) == (StartOutcome.JOINED, "a", "id of a")
    assert go(store.directory.row(RunUid("b"))) is None


def test_a_second_start_is_refused_with_the_open_run(store: Store) -> None:
    start(store, "a", singleton("refuse"))

    answer = start(store, "b", singleton("refuse"))

    assert (answer.outcome, answer.id) == (StartOutcome.OPEN, "id of a")
    assert go(store.directory.row(RunUid("b"))) is None


def test_starts_with_other_keys_do_not_meet(store: Store) -> None:
    start(store, "a", singleton("refuse"), key="k")

    assert start(store, "b", singleton("refuse"), key="other").outcome is StartOutcome.CREATED


def test_a_run_that_has_ended_frees_its_key(store: Store) -> None:
    start(store, "a", singleton("refuse"))
    begin(store, "a")
    finish(store, "a", seq=1, mail_taken=1)

    assert start(store, "b", singleton("refuse")).outcome is StartOutcome.CREATED


def test_a_start_that_replaces_cancels_the_open_run_and_waits_for_its_end(store: Store) -> None:
    start(store, "a", singleton("replace"))
    begin(store, "a")

    answer = start(store, "b", singleton("replace"))

    assert (answer.outcome, answer.uid, list(answer.replaced)) == (StartOutcome.CREATED, "b", ["id of a"])
    assert [mail.body for mail in letters(store, "a")] == [CANCEL]
    assert claimable(store) == []
    taken = [mail.id for mail in letters(store, "a")]
    last = append("a", seq=1, status="cancelled", taken=taken, mail_taken=2)
    assert commit(store, last) == [Outcome.ACCEPTED]
    assert claimable(store) == ["b"]


def test_the_newest_of_several_replacements_is_the_one_that_starts_attach_to(store: Store) -> None:
    start(store, "a", singleton("replace"))
    begin(store, "a")
    start(store, "b", singleton("replace"))
    start(store, "c", singleton("replace"))

    assert [mail.body for mail in letters(store, "b")][1:] == [CANCEL]
    assert start(store, "d", SINGLETON).uid == "c"
    assert go(store.starts.with_slot("singleton:order:k")) == {"a": "id of a", "b": "id of b", "c": "id of c"}


def test_a_delayed_run_behind_another_does_not_become_due(store: Store) -> None:
    start(store, "a", singleton("replace"))
    begin(store, "a")
    delayed = new("b", owner=None, start=b"{}", wake_at=Millis(1_500), slot="singleton:order:k")
    go(store.starts.start(RuledStart(new=delayed, rule=singleton("replace"), cancel=CANCEL)))

    assert claimable(store, 2_000) == []
    assert go(store.directory.next_wake(NAMED, dead=())) is None


def test_a_run_that_is_over_cannot_be_reopened_while_another_has_its_key(store: Store) -> None:
    start(store, "a", SINGLETON)
    begin(store, "a")
    finish(store, "a", seq=1, mail_taken=1, status="failed")
    start(store, "b", SINGLETON)
    again = append("a", seq=2, status="running", reopen=Millis(3_000), mail_taken=1)

    assert commit(store, again) == [Outcome.SLOT_TAKEN]
    assert row(store, "a").status == "failed"
    begin(store, "b")
    finish(store, "b", seq=1, mail_taken=1)
    assert commit(store, again) == [Outcome.ACCEPTED]
    assert start(store, "c", SINGLETON).uid == "a"


def test_a_run_without_a_slot_takes_one_unless_another_has_it(store: Store) -> None:
    create(store, new("a"), new("b"))

    assert go(store.starts.take_slot(RunUid("a"), "singleton:order:k")) is None
    assert go(store.starts.take_slot(RunUid("a"), "singleton:order:k")) is None
    assert go(store.starts.take_slot(RunUid("b"), "singleton:order:k")) == "id of a"
    assert (row(store, "a").slot, row(store, "b").slot) == ("singleton:order:k", None)


# --- ids come first ---------------------------------------------------------------------------------------------------


def test_an_id_that_exists_is_judged_before_the_key(store: Store) -> None:
    create(store, new("x", id="mine"))

    assert start(store, "a", singleton("refuse"), id="mine", chosen=True).outcome is StartOutcome.ID_TAKEN


def test_a_repeated_start_under_its_id_finds_the_run_that_took_it(store: Store) -> None:
    start(store, "a", BATCH)
    joined = start(store, "b", BATCH, id="mine", chosen=True, digest="same")
    begin(store, "a")

    again = start(store, "c", BATCH, id="mine", chosen=True, digest="same")
    other = start(store, "d", BATCH, id="mine", chosen=True, digest="other")

    assert (joined.uid, again.outcome, again.uid) == ("a", StartOutcome.JOINED, "a")
    assert (other.outcome, other.id) == (StartOutcome.ID_REUSED, "id of a")
    assert row(store, "a").inputs == 2


# --- debounced starts -------------------------------------------------------------------------------------------------


def test_a_debounced_run_starts_after_quiet(store: Store) -> None:
    start(store, "a", DEBOUNCE, at=1_000)

    assert claimable(store, 1_099) == []
    assert claimable(store, 1_100) == ["a"]
    assert go(store.directory.next_wake(NAMED, dead=())) == 1_100


def test_another_start_replaces_the_input_and_begins_the_quiet_time_again(store: Store) -> None:
    start(store, "a", DEBOUNCE, at=1_000)

    answer = start(store, "b", DEBOUNCE, at=1_060)

    assert (answer.outcome, answer.uid) == (StartOutcome.JOINED, "a")
    assert [mail.body for mail in letters(store, "a")] == [b'{"input":"b"}']
    assert row(store, "a").wake_at == 1_160


def test_a_debounced_run_starts_at_the_latest_some_time_after_the_first_start(store: Store) -> None:
    start(store, "a", DEBOUNCE, at=1_000)
    start(store, "b", DEBOUNCE, at=1_090)
    start(store, "c", DEBOUNCE, at=1_180)

    assert row(store, "a").wake_at == 1_250
    assert [mail.body for mail in letters(store, "a")] == [b'{"input":"c"}']


def test_a_start_after_a_host_has_claimed_the_debounced_run_waits_for_a_run_of_its_own(store: Store) -> None:
    start(store, "a", DEBOUNCE, at=1_000)
    claim(store, "a", epoch=0)

    answer = start(store, "b", DEBOUNCE, at=1_050)

    assert (answer.outcome, answer.uid) == (StartOutcome.CREATED, "b")
    assert [mail.body for mail in letters(store, "a")] == [b'{"input":"a"}']
    assert claimable(store, 1_150) == ["b"]


# --- batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_collects_inputs_until_its_time(store: Store) -> None:
    start(store, "a", BATCH, at=1_000)
    start(store, "b", BATCH, at=1_050)

    assert [mail.body for mail in letters(store, "a")] == [b'{"input":"a"}', b'{"input":"b"}']
    assert (row(store, "a").inputs, row(store, "a").wake_at) == (2, 1_100)
    assert claimable(store, 1_099) == []
    assert claimable(store, 1_100) == ["a"]


def test_a_batch_does_not_wait_for_a_clock_that_was_set_back(store: Store) -> None:
    start(store, "a", BATCH, at=9_000_000)
    start(store, "b", BATCH, at=1_000)

    assert row(store, "a").wake_at == 1_100
    assert claimable(store, 1_100) == ["a"]


def test_a_full_batch_begins_at_once_and_the_next_start_opens_another(store: Store) -> None:
    for uid in ("a", "b", "c"):
        assert start(store, uid, BATCH).uid == "a"

    assert claimable(store) == ["a"]
    begin(store, "a")
    assert start(store, "d", BATCH).uid == "d"


def test_a_batch_without_room_for_all_items_of_a_start_begins_at_once(store: Store) -> None:
    start(store, "a", BATCH, inputs=2)

    answer = start(store, "b", BATCH, inputs=2)

    assert (answer.outcome, answer.uid) == (StartOutcome.CREATED, "b")
    assert claimable(store) == ["a"]
    assert (row(store, "a").inputs, row(store, "b").inputs) == (2, 2)


def test_a_start_that_fills_a_batch_alone_does_not_wait(store: Store) -> None:
    start(store, "a", BATCH, inputs=3)

    assert claimable(store) == ["a"]


def test_a_batch_that_a_host_has_claimed_takes_no_more_inputs(store: Store) -> None:
    start(store, "a", BATCH)
    claim(store, "a", epoch=0)

    assert start(store, "b", BATCH).uid == "b"
    assert row(store, "a").inputs == 1


def test_the_keys_of_other_rules_do_not_meet(store: Store) -> None:
    start(store, "a", SINGLETON)

    assert start(store, "b", BATCH).outcome is StartOutcome.CREATED
    assert claimable(store, 1_100) == ["a", "b"]
    assert HERE not in {row(store, uid).owner for uid in ("a", "b")}


# --- priorities -------------------------------------------------------------------------------------------------------


def pending(store: Store, uid: str, at: int, priority: int = 0, **fields: Any) -> None:
    made = new(uid, owner=None, created_at=Millis(at), start=b"{}", priority=priority, **fields)
    assert create(store, made) == [Outcome.ACCEPTED]


def test_runs_with_a_higher_priority_are_claimed_first_and_the_oldest_of_each(store: Store) -> None:
    for number, priority in enumerate((0, -5, 7, 0, 7, -5)):
        pending(store, f"run-{number}", 100 + number, priority)

    assert claimable(store) == ["run-2", "run-4", "run-0", "run-3", "run-1", "run-5"]
    assert row(store, "run-2").priority == 7


def test_a_long_line_of_other_runs_does_not_hide_a_run_with_a_priority(store: Store) -> None:
    for number in range(12):
        pending(store, f"old-{number:02}", 100 + number, priority=-1)
        pending(store, f"plain-{number:02}", 200 + number)
    pending(store, "late", 900, priority=1)
    pending(store, "due", 950, priority=2, wake_at=Millis(960))

    found = claimable(store)

    assert found[:3] == ["due", "late", "plain-00"]
    assert len(found) == 10


def test_runs_with_a_priority_that_sleep_do_not_hide_those_that_are_due(store: Store) -> None:
    def sleeping(uid: str, priority: int, wake_at: int) -> None:
        made = new(uid, owner=None, created_at=Millis(100), priority=priority, wake_at=Millis(wake_at))
        assert create(store, made) == [Outcome.ACCEPTED]

    for number in range(3):
        sleeping(f"asleep-{number}", 9, 10_000)
        sleeping(f"low-{number}", -9, 110 + number)
    for number, (priority, wake_at) in enumerate([(5, 130), (5, 120), (7, 140), (-1, 110)]):
        sleeping(f"due-{number}", priority, wake_at)

    assert claimable(store, limit=4) == ["due-2", "due-1", "due-0", "due-3"]
    assert claimable(store, limit=5)[4:] == ["low-0"]


def test_a_run_that_is_created_with_its_first_event_has_its_priority(store: Store) -> None:
    first = append("a", create=new("a", priority=3), status="running")

    assert commit(store, first) == [Outcome.ACCEPTED]
    assert row(store, "a").priority == 3


def test_tasks_of_runs_with_a_higher_priority_are_taken_first_and_the_oldest_of_each(store: Store) -> None:
    for number, priority in enumerate((0, -5, 7, 0, 7, -5)):
        made = append(f"run-{number}", create=new(f"run-{number}", priority=priority), status="running")
        assert commit(store, made) == [Outcome.ACCEPTED]
        offered = TaskOffer(
            uid=RunUid(f"run-{number}"),
            task=1,
            attempt=1,
            delivery=1,
            step="work",
            queue="q",
            body=b"{}",
            epoch=Epoch(1),
        )
        go(store.tasks.offer([offered]))

    def take(limit: int) -> set[str]:
        taken = go(store.tasks.take(HERE, queues=["q"], steps=["work"], now=Millis(9_000), limit=limit))
        return {task.uid for task in taken}

    assert [take(1), take(2), take(2), take(5)] == [{"run-2"}, {"run-4", "run-0"}, {"run-3", "run-1"}, {"run-5"}]
    assert take(5) == set()


def test_starts_at_the_same_time_create_one_run_and_lose_no_input(store: Store) -> None:
    def order(uid: str, rule: StartRule, **fields: Any) -> RuledStart:
        return RuledStart(new=new(uid, owner=None, start=b"{}", slot=slot_of(rule, "order", "k"), **fields), rule=rule)

    async def race(orders: list[RuledStart]) -> list[StartAnswer]:
        return list(await asyncio.gather(*(store.starts.start(one) for one in orders)))

    single = go(race([order(f"single-{n}", SINGLETON) for n in range(20)]))
    batched = go(race([order(f"batch-{n}", BATCH, inputs=1, wake_at=Millis(9_000)) for n in range(20)]))

    assert sorted(answer.outcome for answer in single) == ["created"] + ["joined"] * 19
    assert len({answer.uid for answer in single}) == 1
    runs = {answer.uid for answer in batched}
    assert sum(row(store, uid).inputs for uid in runs) == 20
    assert sum(len(letters(store, uid)) for uid in runs) == 20
    assert all(row(store, uid).inputs <= BATCH.size for uid in runs)
