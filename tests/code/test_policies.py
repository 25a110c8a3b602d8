"""A policy that cannot work is refused where it is declared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import weft
from weft.authoring.since import since_to_ms
from weft.errors import BadDuration, BadValue, UsageError
from weft.runtime.fork_order import ForkOrder, check_order


async def body(n: int) -> int:
    return n


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"queue": 5}, "queue=5 is not the name of a queue"),
        ({"queue": ""}, "queue=''"),
        ({"queue": None}, "queue=None"),
        ({"run_in": "fork"}, '"thread" or "process"'),
        ({"retries": 1.5}, "retries=1.5 is not valid: the number of attempts must be an integer"),
        ({"retries": "3"}, "retries='3'"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": True}, "retries=True"),
        ({"retries": None}, "retries=None"),
        ({"retries": weft.Retry(attempts=2.5)}, "is not valid: the number of attempts must be an integer"),  # type: ignore[arg-type]
        ({"retries": weft.Retry(attempts=0)}, "is not valid: the number of attempts must be an integer"),
        ({"raises": ValueError}, "a sequence of exceptions"),
        ({"raises": "ValueError"}, "a sequence of exceptions"),
        ({"raises": ("ValueError",)}, "a sequence of exceptions"),
        ({"raises": (ValueError("x"),)}, "a sequence of exceptions"),
        ({"raises": [SystemExit]}, "SystemExit, which a workflow cannot catch from a step"),
        ({"raises": [ValueError, StopIteration]}, "StopIteration, which a workflow cannot catch"),
        ({"width": 0}, "width=0"),
        ({"width": "3"}, "width='3'"),
        ({"effect": "none"}, "effect='none'"),
        ({"timeout": "soon"}, "soon"),
        ({"timeout": -1}, "-1"),
    ],
)
def test_a_wrong_policy_is_refused_at_the_step(policy: dict[str, Any], told: str) -> None:
    with pytest.raises(weft.UsageError) as refused:
        weft.App("memory://").step(**policy)(body)

    assert told in str(refused.value)


@pytest.mark.parametrize("policy", [{"queue": 5}, {"retries": 1.5}, {"timeout": -1}])
def test_and_at_its_options(policy: dict[str, Any]) -> None:
    step = weft.App("memory://").step(body)

    with pytest.raises(weft.UsageError):
        step.options(**policy)


@pytest.mark.parametrize("register", ["step", "workflow"])
def test_an_option_that_does_not_exist_is_refused_with_the_nearest_one(register: str) -> None:
    app = weft.App("memory://")
    wrong, right = {"step": ("retry", "retries"), "workflow": ("versions", "version")}[register]

    with pytest.raises(weft.UsageError) as refused:
        getattr(app, register)(**{wrong: 3})(body)

    assert refused.value.message == f'The {register} body has no option "{wrong}".'
    assert f'Did you mean "{right}"?' in (refused.value.hint or "")
    assert "test_policies.py:" in (refused.value.hint or "")


def test_an_option_that_is_like_no_other_is_refused_with_all_of_them() -> None:
    with pytest.raises(weft.UsageError) as refused:
        weft.App("memory://").step(name="charge", zzz=1)(body)  # type: ignore[call-overload]

    assert "The step charge has no option" in refused.value.message
    assert "Did you mean" not in (refused.value.hint or "")
    assert "cache, effect, gives, labels, limit, name, queue, raises, retries" in (refused.value.hint or "")


def test_options_beside_the_function_count() -> None:
    app = weft.App("memory://")

    step = app.step(body, name="renamed")  # type: ignore[call-overload]

    assert step.name == "renamed"


@pytest.mark.parametrize("register", ["step", "workflow"])
def test_a_name_is_no_function(register: str) -> None:
    with pytest.raises(weft.UsageError, match="does not register a function") as refused:
        getattr(weft.App("memory://"), register)("charge")

    assert f'@app.{register}(name="...")' in (refused.value.hint or "")


def test_a_generator_is_no_step() -> None:
    app = weft.App("memory://")

    def pieces() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    for fn in (pieces, later):
        with pytest.raises(weft.UsageError, match="is a generator"):
            app.step(fn)


def test_since_is_a_time_or_a_duration_in_any_spelling() -> None:
    assert since_to_ms("1970-01-01T00:00:01+00:00") == since_to_ms(datetime.fromtimestamp(1, UTC)) == 1_000
    assert since_to_ms(timedelta(days=900_000)) == 0
    ago = since_to_ms("2h")
    assert ago is not None
    assert ago <= (since_to_ms(timedelta(hours=2)) or 0)
    with pytest.raises(BadDuration):
        since_to_ms("yesterday")
    with pytest.raises(BadValue, match="neither a time nor a duration"):
        since_to_ms(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [ForkOrder(at=True), ForkOrder(before="a", visit=True), ForkOrder(at="3")])  # type: ignore[arg-type]
def test_a_fork_takes_whole_numbers(order: ForkOrder) -> None:
    with pytest.raises(UsageError, match="is not a whole number"):
        check_order(order)
