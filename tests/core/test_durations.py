"""What people write for a length of time is understood exactly, or refused with a text that shows how to write it."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.durations import DURATION_MS_MAX, duration_ms, format_ms
from weft.errors import BadDuration

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("1h30m", HOUR + HOUR // 2),
        ("2d", 48 * HOUR),
        ("1w", 7 * 24 * HOUR),
        ("1w2d3h4m5s6ms", 788_645_006),
        ("1.5h", HOUR + HOUR // 2),
        ("0.25s", 250),
        ("5m", 300_000),
        ("5ms", 5),
        ("0s", 0),
        ("PT1H30M", HOUR + HOUR // 2),
        ("P2D", 48 * HOUR),
        ("P1W", 7 * 24 * HOUR),
        ("P1DT12H", 36 * HOUR),
        ("PT0.5S", 500),
        (3, 3000),
        (0, 0),
        (0.25, 250),
        (1.0005, 1001),
        (timedelta(hours=1), HOUR),
        (timedelta(microseconds=1500), 2),
    ],
)
def test_every_spelling_of_a_duration_is_understood(written: str | float | timedelta, expected: int) -> None:
    assert duration_ms(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        *["1hour", "s", "30", "-5s", "30m1h", "1h1h", "1H", "P", "PT", "P1Y", "P1M", "PT1H30", "P1DT", "1e3s"],
        *["٣s", "1.s", ".5s", "1_000s", "inf", "nan"],
        *["", "30 s", " 30s", "1h\n", "9" * 16 + "s"],
    ],
)
def test_a_text_that_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(BadDuration):
        duration_ms(written)


@pytest.mark.parametrize(
    "value",
    [
        *[True, False, None, b"1s", [1], timedelta(seconds=-1)],
        *[float("nan"), float("inf"), float("-inf"), -1, -0.001, 10**400, -(10**400), 1e300],
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_that_is_no_duration_is_refused(value: Any) -> None:
    with pytest.raises(BadDuration):
        duration_ms(value)


def test_the_refusal_says_what_to_write() -> None:
    with pytest.raises(BadDuration) as refused:
        duration_ms("1hour")

    assert str(refused.value) == (
        '"1hour" is not a duration. Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.'
    )
    assert refused.value.code == "value.bad_duration"


@pytest.mark.parametrize("value", ["x" * 10_000, 1 << 20_000], ids=["text", "number"])
def test_a_long_value_is_not_repeated_whole(value: str | int) -> None:
    with pytest.raises(BadDuration) as refused:
        duration_ms(value)

    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("ms", [DURATION_MS_MAX - 1, DURATION_MS_MAX])
def test_a_thousand_years_are_accepted(ms: int) -> None:
    assert duration_ms(timedelta(milliseconds=ms)) == ms
    assert duration_ms(f"{ms}ms") == ms


def test_one_millisecond_more_is_refused() -> None:
    for value in (timedelta(milliseconds=DURATION_MS_MAX + 1), f"{DURATION_MS_MAX + 1}ms", DURATION_MS_MAX // 1000 + 1):
        with pytest.raises(BadDuration, match="longer than a thousand years"):
            duration_ms(value)


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0s"),
        (1, "1ms"),
        (999, "999ms"),
        (1000, "1s"),
        (1500, "1.5s"),
        (59_999, "59.999s"),
        (60_000, "1m"),
        (5_400_000, "1h30m"),
        (48 * HOUR + 1, "2d0.001s"),
        (-1500, "-1.5s"),
    ],
)
def test_a_duration_is_shown_as_people_write_it(ms: int, shown: str) -> None:
    assert format_ms(ms) == shown


@given(st.integers(min_value=0, max_value=DURATION_MS_MAX))
def test_what_is_shown_is_read_back(ms: int) -> None:
    assert duration_ms(format_ms(ms)) == ms


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_a_typed_refusal(text: str) -> None:
    with suppress(BadDuration):
        assert duration_ms(text) >= 0
