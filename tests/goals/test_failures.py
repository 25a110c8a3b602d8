"""A goal that cannot be reached says what failed at the root."""

import pytest

import weft


def test_a_goal_that_lost_an_input_says_what_its_giver_answered() -> None:
    app = weft.App("memory://")

    @app.step(gives="total", retries=1)
    def price(order_id: str) -> int:
        raise OSError("503 from the price service")

    @app.step(gives="receipt")
    def receipt(total: int) -> str:
        return str(total)

    @app.step(gives="mail", retries=weft.Retry(attempts=2, delay="1ms"))
    def send(receipt: str) -> str:
        return receipt

    goal = app.goal("bill", send)
    with pytest.raises(weft.RunFailed) as failed:
        app.run(goal, {"order_id": "o-1"}, id="b-1")

    text, failure = str(failed.value), failed.value.failure
    assert "required input no longer available: receipt" in text
    assert "The cause: price: OSError: 503 from the price service at test_failures.py:" in text
    assert (failure.step, failure.location, failure.attempts) == ("price", "price", 2)
    assert "in price\n" in failure.traceback


def test_a_goal_that_fails_itself_is_its_own_cause() -> None:
    app = weft.App("memory://")

    @app.step(gives="total", retries=0)
    def price(order_id: str) -> int:
        raise OSError("503")

    with pytest.raises(weft.RunFailed) as failed:
        app.run(app.goal("bill", price), {"order_id": "o-1"})

    assert failed.value.failure.cause == ""
    assert "goal step 'price' cannot complete: 503" in str(failed.value)
