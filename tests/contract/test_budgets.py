"""The ledger of budgets: changed by appends that are accepted, in their transaction, and by no others."""

from tests.contract.kit import HERE, OTHER, RUN, THERE, append, claim, commit, finish, go, new, start
from weft.core.budgets import Amounts, Cover
from weft.core.ids import Millis
from weft.core.ledger import (
    Answer,
    BudgetWindow,
    Crossed,
    Granted,
    HandOut,
    LedgerRow,
    MarkWarned,
    Move,
    ReleaseCover,
    Reserve,
    SetLimits,
    Settle,
    Short,
    account_of,
)
from weft.ports.retention import DoomRule
from weft.ports.store import Outcome, Store

CALL = HandOut(7, 1, 1)
NEXT = HandOut(8, 2, 3)


def tokens(amount: int) -> Cover:
    return Cover(amounts=Amounts(tokens=amount))


def limited(store: Store, tokens: int = 100, warn: int = 0) -> None:
    """A run with a budget."""
    begin = append(RUN, create=new(RUN), status="running", ledger=[SetLimits(RUN, {"tokens": tokens}, warn)])
    assert commit(store, begin) == [Outcome.ACCEPTED]


def move(store: Store, *moves: Move, uid: str = RUN, seq: int = 1) -> list[Answer]:
    """Append one event with these moves."""
    one = append(uid, seq=seq, ledger=moves)
    assert commit(store, one) == [Outcome.ACCEPTED]
    return list(one.answers)


def rows(store: Store, *scopes: str) -> list[LedgerRow]:
    return list(go(store.budgets.read(scopes or (RUN,))))


def spent(store: Store, scope: str = RUN) -> tuple[int, int]:
    (row,) = rows(store, scope)
    return row.spent, row.reserved


def test_a_budget_is_set_with_the_run_and_seen_by_others(store: Store, peer: Store) -> None:
    limited(store, warn=800)

    expected = LedgerRow(scope=RUN, unit="tokens", limit=100, warn=800)
    assert rows(store) == [expected]
    assert rows(peer) == [expected]


def test_a_reservation_counts_until_it_is_settled(store: Store, peer: Store) -> None:
    limited(store)

    assert move(store, Reserve(CALL, tokens(60), [RUN])) == [Granted(CALL, 0)]
    assert spent(peer) == (0, 60)
    assert move(store, Settle(CALL, [RUN], {"tokens": 20}), seq=2) == []
    assert spent(peer) == (20, 0)
    assert spent(peer, account_of(RUN)) == (20, 0)


def test_a_short_reservation_is_answered_and_the_append_accepted(store: Store) -> None:
    limited(store)

    answers = move(store, Reserve(CALL, tokens(60), [RUN]), Reserve(NEXT, tokens(50), [RUN]))

    assert answers == [
        Granted(CALL, 0),
        Short(call=NEXT, scope=RUN, unit="tokens", limit=100, spent=0, reserved=60, wanted=50),
    ]
    assert spent(store) == (0, 60)


def test_a_reservation_that_is_made_again_is_found(store: Store) -> None:
    limited(store)
    move(store, Reserve(CALL, tokens(60), [RUN]))

    assert move(store, Reserve(CALL, tokens(60), [RUN]), seq=2) == [Granted(CALL, 0)]
    assert spent(store) == (0, 60)


def test_an_append_without_events_may_reserve(store: Store) -> None:
    limited(store)
    only = append(RUN, seq=1, count=0, ledger=[Reserve(CALL, tokens(60), [RUN])])

    assert commit(store, only) == [Outcome.ACCEPTED]
    assert only.answers == [Granted(CALL, 0)]


def test_a_lost_call_has_spent_at_most_what_was_reserved(store: Store) -> None:
    limited(store)
    move(store, Reserve(CALL, tokens(60), [RUN]))
    move(store, Settle(CALL, [RUN]), seq=2)

    (row,) = rows(store)
    assert (row.spent, row.at_most, row.reserved) == (60, 60, 0)


def test_a_released_call_has_spent_nothing(store: Store) -> None:
    limited(store)
    move(store, Reserve(CALL, tokens(60), [RUN]))
    move(store, ReleaseCover(CALL), seq=2)

    assert spent(store) == (0, 0)


def test_an_append_that_is_refused_moves_nothing(store: Store) -> None:
    limited(store)
    stale = append(RUN, seq=5, ledger=[Reserve(CALL, tokens(60), [RUN])])
    claim(store, epoch=1, host=THERE)
    foreign = append(RUN, seq=1, ledger=[Reserve(CALL, tokens(60), [RUN])])

    assert commit(store, stale, host=THERE) == [Outcome.STALE_EPOCH]
    assert commit(store, foreign, host=HERE) == [Outcome.STALE_EPOCH]
    assert spent(store) == (0, 0)
    assert list(foreign.answers) == []


def test_runs_of_one_batch_spend_from_one_budget(store: Store) -> None:
    limited(store)
    start(store, OTHER, count=1)
    batch = [
        append(RUN, seq=1, ledger=[Reserve(CALL, tokens(60), [RUN])]),
        append(OTHER, seq=1, ledger=[Reserve(CALL, tokens(60), [RUN])]),
    ]

    assert commit(store, *batch) == [Outcome.ACCEPTED, Outcome.ACCEPTED]
    assert isinstance(batch[0].answers[0], Granted)
    assert isinstance(batch[1].answers[0], Short)
    assert spent(store) == (0, 60)


def test_runs_of_other_hosts_spend_from_the_budget(store: Store, peer: Store) -> None:
    limited(store)
    start(store, OTHER, count=1)

    assert move(store, Reserve(CALL, tokens(60), [RUN])) == [Granted(CALL, 0)]
    (short,) = move(peer, Reserve(CALL, tokens(60), [RUN]), uid=OTHER)

    assert isinstance(short, Short)
    assert rows(store, account_of(OTHER)) == []


def test_a_limit_is_raised(store: Store) -> None:
    limited(store)
    move(store, SetLimits(RUN, {"tokens": 50}, raises=True))

    assert [row.limit for row in rows(store)] == [150]


def test_a_warning_is_reported_until_it_is_marked(store: Store) -> None:
    limited(store, warn=500)

    assert move(store, Settle(CALL, [RUN], {"tokens": 60})) == [Crossed(RUN, "tokens")]
    assert move(store, MarkWarned(RUN, "tokens"), Settle(NEXT, [RUN], {"tokens": 1}), seq=2) == []
    assert [row.warned for row in rows(store)] == [True]


def test_a_window_belongs_to_no_run(store: Store) -> None:
    limited(store)
    window = BudgetWindow("window:acme/day/1", {"tokens": 70})

    (answer,) = move(store, Reserve(CALL, tokens(60), [RUN], [window]))

    assert isinstance(answer, Granted)
    assert spent(store, window.scope) == (0, 60)


def test_a_window_limits_what_the_policy_limits_now(store: Store) -> None:
    limited(store)
    window = BudgetWindow("window:acme/day/1", {"tokens": 70}, ends_at=9)
    move(store, Reserve(CALL, tokens(60), [], [window]))

    (short,) = move(store, Reserve(NEXT, tokens(20), [], [window]), seq=2)
    (granted,) = move(store, Reserve(NEXT, tokens(20), [], [BudgetWindow(window.scope, {"calls": 1}, 9)]), seq=3)

    assert isinstance(short, Short)
    assert short.scope == window.scope
    assert isinstance(granted, Granted)
    assert [(row.unit, row.limit, row.reserved) for row in rows(store, window.scope)] == [
        ("calls", 1, 0),
        ("tokens", None, 80),
    ]


def test_a_call_without_a_reservation_spends_from_windows(store: Store) -> None:
    limited(store)
    window = BudgetWindow("window:acme/day/1", {"tokens": 70}, ends_at=9)

    move(store, Settle(CALL, [RUN], {"tokens": 50}, [window]))

    assert spent(store, window.scope) == (50, 0)
    assert spent(store) == (50, 0)


def test_windows_that_are_over_are_forgotten_unless_something_is_reserved(store: Store) -> None:
    limited(store)
    old, busy, new_one = (BudgetWindow(f"window:acme/day/{n}", {"tokens": 70}, ends_at=n) for n in (5, 6, 20))
    move(store, Settle(HandOut(1, 1, 0), [RUN], {"tokens": 5}, [old, new_one]))
    move(store, Reserve(CALL, tokens(6), [RUN], [busy]), seq=2)

    assert go(store.budgets.forget(ended_before=Millis(10))) == 1
    assert [row.scope for row in rows(store, old.scope, busy.scope, new_one.scope)] == [new_one.scope, busy.scope]

    move(store, Settle(CALL, [RUN], {"tokens": 6}), seq=3)
    assert go(store.budgets.forget(ended_before=Millis(10))) == 1
    assert spent(store) == (11, 0)


def test_a_run_that_ends_settles_in_the_same_append(store: Store) -> None:
    limited(store)
    move(store, Reserve(CALL, tokens(60), [RUN]))
    finish(store, seq=2, ledger=[Settle(CALL, [RUN])])

    assert spent(store) == (60, 0)


def test_a_run_that_is_written_whole_brings_its_limits(store: Store) -> None:
    whole = append(RUN, epoch=0, create=new(RUN, owner=None), status="running", ledger=[SetLimits(RUN, {"tokens": 5})])

    assert go(store.log.write_run(whole)) is Outcome.ACCEPTED
    assert [row.limit for row in rows(store)] == [5]


def test_runs_that_are_written_together_move_the_ledger(store: Store) -> None:
    limited(store)
    one = append(RUN, seq=1, ledger=[Settle(CALL, [RUN], {"tokens": 3})])

    assert list(go(store.log.write_together([one]))) == [Outcome.ACCEPTED]
    assert spent(store) == (3, 0)


def test_a_run_that_is_deleted_takes_its_rows_along(store: Store) -> None:
    limited(store)
    move(store, Reserve(CALL, tokens(60), [RUN]))
    finish(store, seq=2)

    go(store.retention.doom(RUN, DoomRule()))
    for _ in range(5):
        go(store.retention.clear(limit=100))

    assert rows(store, RUN, account_of(RUN)) == []
