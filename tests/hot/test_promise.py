"""One sentence says what may be lost, from what the server reports and from the policy."""

import msgspec
import pytest

from tests.hot.memory_server import FACTS
from weft.ports.wal_server import ServerFacts
from weft.stores.hot.policy import hot_policy
from weft.stores.hot.promise import server_text, server_warning, what_may_be_lost


def of(**facts: object) -> ServerFacts:
    return msgspec.structs.replace(FACTS, **facts)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (of(), "those of the last second if the machine of Redis loses power"),
        (of(appendfsync="always"), "nothing if the machine of Redis loses power"),
        (of(appendfsync="no"), "those of about the last 30 seconds if the machine of Redis loses power"),
        (of(aof=False), "all of them if Redis restarts, because it has no AOF"),
        (of(aof=None), "is not known, because the server does not tell"),
        (of(appendfsync=None), "is not known, because the server does not tell"),
        (of(replicas=1), "those that the replica lacked if Redis fails over"),
        (of(replicas=None), "(whether it has replicas is not known)"),
        (None, "is not known, because the server does not tell"),
    ],
)
def test_the_sentence_follows_from_what_the_server_reports(facts: ServerFacts | None, says: str) -> None:
    sentence = what_may_be_lost(facts, hot_policy("event"))
    assert says in sentence
    assert sentence.startswith("Answered commands, results and irreversible steps are never lost")
    assert sentence.count(".") == 1


def test_without_replicas_a_failover_is_not_mentioned() -> None:
    assert "fails over" not in what_may_be_lost(of(replicas=0), hot_policy("event"))


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("event", "those of the last 50 milliseconds, or of up to 10 seconds while Postgres is slow, if Redis is gone"),
        ("10s", "those of the last 10s, or of up to 10 seconds more while Postgres is slow, if Redis is gone"),
        ("end", "those of up to the last minute if Redis is gone"),
    ],
)
def test_the_policy_says_how_much_is_not_in_postgres(policy: str, says: str) -> None:
    assert says in what_may_be_lost(of(), hot_policy(policy))


def test_a_server_is_described_in_a_few_words() -> None:
    assert server_text(of(server="valkey", version="9.1.2")) == "valkey 9.1.2, AOF everysec, 0 replicas"
    assert server_text(ServerFacts()) == "redis of unknown version, AOF unknown, replicas unknown"
    assert server_text(of(aof=False, replicas=1)) == "memory 7.0.0, no AOF, 1 replica"


def test_a_server_without_an_aof_is_warned_about() -> None:
    assert "appendonly" in server_warning(of(aof=False))
    assert not server_warning(of())
    assert not server_warning(of(aof=None))
