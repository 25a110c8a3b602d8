"""The same warning again and again is one line in a while."""

import pytest

from weft.runtime.throttled_log import INTERVAL_SECONDS, ThrottledLog


def test_what_is_said_again_is_counted_and_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    throttled_log = ThrottledLog(lambda: now)
    for n in range(1_000):
        throttled_log.warn("%s does not answer", n)
    throttled_log.warn("another %s", "thing")
    now += INTERVAL_SECONDS
    throttled_log.warn("%s does not answer", "it")

    assert [record.getMessage() for record in caplog.records] == [
        "0 does not answer",
        "another thing",
        "it does not answer (999 more of these were not logged)",
    ]
