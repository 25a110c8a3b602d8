"""The same warning again and again is one line in a while."""

import pytest

from weft.runtime.complaints import SILENCE_SECONDS, Complaints


def test_what_is_said_again_is_counted_and_said_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    complaints = Complaints(lambda: now)
    for n in range(1_000):
        complaints.say("%s does not answer", n)
    complaints.say("another %s", "thing")
    now += SILENCE_SECONDS
    complaints.say("%s does not answer", "it")

    assert [record.getMessage() for record in caplog.records] == [
        "0 does not answer",
        "another thing",
        "it does not answer (999 more of these were not logged)",
    ]
