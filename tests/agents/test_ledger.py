"""The arithmetic of the ledger: what is spent and reserved never passes a limit, whatever is asked of it."""

from __future__ import annotations

import random

import pytest

from tests import scale
from weft.core.budgets import Amounts, Cover, amount_text, spent_of, units_of
from weft.core.ledger import (
    BudgetWindow,
    Crossed,
    Granted,
    HandOut,
    Ledger,
    LedgerRow,
    MarkWarned,
    ReleaseCover,
    Reserve,
    SetLimits,
    Settle,
    Short,
    account_of,
    cost_with,
)

RUN = "run-1"


def call(task: int = 1, attempt: int = 1, delivery: int = 1) -> HandOut:
    return HandOut(task, attempt, delivery)


def tokens(amount: int) -> Cover:
    return Cover(amounts=Amounts(tokens=amount))


def elastic(prompt: int, output: int) -> Cover:
    """A model call: each token of its prompt costs 1, each of its output 4."""
    return Cover(
        amounts=Amounts(tokens=prompt + output, money=prompt + 4 * output, currency="USD", calls=1),
        least=Amounts(tokens=prompt + 256, money=prompt + 4 * 256, currency="USD", calls=1),
        output=output,
        output_least=256,
    )


def limited(*scopes: str, warn: int = 0, **limits: int) -> Ledger:
    ledger = Ledger()
    for scope in scopes:
        ledger.apply(scope, [SetLimits(scope, limits, warn)])
    return ledger


def row(ledger: Ledger, scope: str = RUN, unit: str = "tokens") -> LedgerRow:
    return ledger.rows[scope, unit]


def test_a_reservation_is_made_in_all_scopes_or_in_none() -> None:
    ledger = limited("top", "below", tokens=100)
    ledger.apply("top", [SetLimits("top", {"tokens": 300})])

    answers = ledger.apply(
        RUN, [Reserve(call(1), tokens(80), ["top", "below"]), Reserve(call(2), tokens(80), ["top", "below"])]
    )

    assert answers[0] == Granted(call(1), 0)
    assert answers[1] == Short(call=call(2), scope="below", unit="tokens", limit=100, spent=0, reserved=80, wanted=80)
    assert (row(ledger, "top").reserved, row(ledger, "below").reserved) == (80, 80)


def test_a_call_that_has_a_reservation_keeps_it() -> None:
    ledger = limited(RUN, tokens=100)

    for _ in range(3):
        assert ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN])]) == [Granted(call(), 0)]

    assert row(ledger).reserved == 80


def test_each_delivery_has_a_reservation_of_its_own() -> None:
    ledger = limited(RUN, tokens=100)
    ledger.apply(RUN, [Reserve(call(delivery=1), tokens(60), [RUN])])

    lost = ledger.apply(RUN, [Settle(call(delivery=1), [RUN]), Reserve(call(delivery=2), tokens(60), [RUN])])

    assert isinstance(lost[0], Short)
    assert (row(ledger).spent, row(ledger).at_most, row(ledger).reserved) == (60, 60, 0)


def test_what_was_spent_replaces_what_was_reserved() -> None:
    ledger = limited(RUN, tokens=100)
    ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN])])
    ledger.apply(RUN, [Settle(call(), [RUN], {"tokens": 30, "calls": 1})])

    assert (row(ledger).spent, row(ledger).at_most, row(ledger).left) == (30, 0, 70)
    assert row(ledger, unit="calls").limit is None
    assert row(ledger, account_of(RUN)).spent == 30


def test_a_call_is_settled_once() -> None:
    ledger = limited(RUN, tokens=100)
    ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN]), Settle(call(), [RUN]), Settle(call(), [RUN])])

    assert row(ledger).spent == 80


def test_a_call_that_was_never_made_costs_nothing() -> None:
    ledger = limited(RUN, tokens=100)
    ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN]), ReleaseCover(call())])

    assert (row(ledger).spent, row(ledger).reserved) == (0, 0)


def test_a_refused_call_costs_nothing_when_its_task_ends() -> None:
    ledger = limited(RUN, tokens=10)
    ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN]), Settle(call(), [RUN])])

    assert row(ledger).spent == 0


def test_a_raised_limit_lets_the_next_call_go() -> None:
    ledger = limited(RUN, tokens=10)
    ledger.apply(RUN, [SetLimits(RUN, {"tokens": 70}, raises=True)])

    assert ledger.apply(RUN, [Reserve(call(), tokens(80), [RUN])]) == [Granted(call(), 0)]


@pytest.mark.parametrize(
    ("left", "output"), [(10_000, 4_000), (2_000, 1_000), (1_301, 301), (1_256, 256), (1_255, None)]
)
def test_the_output_is_lowered_to_what_is_left(left: int, output: int | None) -> None:
    ledger = limited(RUN, tokens=left)
    (answer,) = ledger.apply(RUN, [Reserve(call(), elastic(1_000, 4_000), [RUN])])

    assert (answer.output if isinstance(answer, Granted) else None) == output
    assert row(ledger).reserved == (0 if output is None else 1_000 + output)


def test_the_scarcest_unit_decides_how_long_the_output_is() -> None:
    ledger = limited(RUN, **{"tokens": 10_000, "money:USD": 1_000 + 4 * 300 + 3})
    (answer,) = ledger.apply(RUN, [Reserve(call(), elastic(1_000, 4_000), [RUN])])

    assert answer == Granted(call(), 300)
    assert row(ledger, unit="money:USD").reserved == 1_000 + 4 * 300


def test_a_window_has_the_limits_that_hold_now() -> None:
    ledger = Ledger()
    window = BudgetWindow("window:acme/day/1", {"calls": 1})
    cover = Cover(amounts=Amounts(calls=1))

    first = ledger.apply(RUN, [Reserve(call(1), cover, [], [window]), Settle(call(1), [], {"calls": 1})])
    second = ledger.apply(RUN, [Reserve(call(2), cover, [], [window])])

    assert isinstance(first[0], Granted)
    assert isinstance(second[0], Short)


def test_a_warning_is_due_until_it_is_recorded() -> None:
    ledger = limited(RUN, warn=800, tokens=100)
    spend = [Settle(call(), [RUN], {"tokens": 40})]

    assert ledger.apply(RUN, spend) == []
    assert ledger.apply(RUN, spend) == [Crossed(RUN, "tokens")]
    assert ledger.apply(RUN, [Settle(call(), [RUN], {"tokens": 1})]) == [Crossed(RUN, "tokens")]
    assert ledger.apply(RUN, [MarkWarned(RUN, "tokens"), *spend]) == []


@pytest.mark.parametrize("seed", scale.first(20, range(200)))
def test_spent_and_reserved_never_pass_a_limit(seed: int) -> None:
    """As long as no call costs more than was reserved for it, whatever is lost, released, repeated or raised."""
    dice = random.Random(seed)
    limits = {"tokens": dice.randint(0, 20_000), "money:USD": dice.randint(0, 60_000), "calls": dice.randint(0, 12)}
    ledger = limited("top", "mid", **limits)
    open_calls: list[HandOut] = []
    for task in range(60):
        match dice.choice(["reserve", "reserve", "again", "spend", "lose", "release", "raise"]):
            case "reserve":
                cover = elastic(dice.randint(1, 2_000), dice.randint(256, 4_000))
                (answer,) = ledger.apply(RUN, [Reserve(call(task), cover, ["top", "mid"])])
                open_calls += [call(task)] if isinstance(answer, Granted) else []
            case "again" if open_calls:
                ledger.apply(RUN, [Reserve(dice.choice(open_calls), elastic(1, 300), ["top", "mid"])])
            case "spend" if open_calls:
                ended = open_calls.pop(dice.randrange(len(open_calls)))
                reserved = ledger.reservations[RUN, ended.task, ended.attempt, ended.delivery].units
                spent = {unit: dice.randint(0, amount) for unit, amount in reserved.items()}
                ledger.apply(RUN, [Settle(ended, ["top", "mid"], spent)])
            case "lose" if open_calls:
                ledger.apply(RUN, [Settle(open_calls.pop(), ["top", "mid"])])
            case "release" if open_calls:
                ledger.apply(RUN, [ReleaseCover(open_calls.pop())])
            case "raise":
                unit = dice.choice(sorted(limits))
                ledger.apply("top", [SetLimits("top", {unit: dice.randint(0, 500)}, raises=True)])
        for one in ledger.rows.values():
            assert one.limit is None or one.spent + one.reserved <= one.limit
            assert one.spent >= one.at_most >= 0
            assert one.reserved >= 0
    for left in open_calls:
        ledger.apply(RUN, [ReleaseCover(left)])
    assert all(one.reserved == 0 for one in ledger.rows.values())
    assert not ledger.reservations


@pytest.mark.parametrize("seed", scale.first(20, range(200)))
def test_a_shorter_output_never_costs_more(seed: int) -> None:
    dice = random.Random(seed)
    cover = elastic(dice.randint(0, 9_999), dice.randint(257, 9_999))
    shorter, longer = sorted(dice.randint(256, cover.output) for _ in range(2))

    assert cost_with(cover, cover.output) == units_of(cover.amounts)
    assert cost_with(cover, 256) == units_of(cover.least or Amounts())
    assert all(amount <= cost_with(cover, longer)[unit] for unit, amount in cost_with(cover, shorter).items())


def test_a_call_that_reported_nothing_has_used_at_most_what_was_reserved() -> None:
    assert spent_of(elastic(10, 300), None, 5) is None


def test_a_tool_call_is_counted_with_the_time_that_it_took() -> None:
    cover = Cover(amounts=Amounts(tools=1, per_tool={"refund": 1}, time=60_000))

    assert spent_of(cover, None, 5) == Amounts(tools=1, per_tool={"refund": 1}, time=5)


@pytest.mark.parametrize(
    ("unit", "amount", "text"),
    [
        ("money:USD", 2_500_000, "2.50 USD"),
        ("money:EUR", 123, "0.000123 EUR"),
        ("time", 90_000, "1m30s"),
        ("tokens", 12_000, "12,000 tokens"),
        ("tools", 3, "3 tool calls"),
        ("calls", 1, "1 model call"),
        ("tool:refund", 1, "1 call of refund"),
    ],
)
def test_amounts_are_shown_with_their_units(unit: str, amount: int, text: str) -> None:
    assert amount_text(unit, amount) == text
