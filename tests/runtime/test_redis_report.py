"""What a host says about its Redis server."""

from weft.runtime.redis_watch import RedisReport


def test_the_reason_why_a_server_is_not_used_ends_with_one_full_stop() -> None:
    report = RedisReport(
        role="hints", url="redis://r", server="valkey", used=False, problem="Refused.", may_be_lost="Nothing."
    )

    assert report.line() == "Redis at redis://r (hints): valkey; not used now: Refused. Nothing."
