"""What a server says about itself is understood; servers that would lose acknowledged steps are refused."""

import pytest

from tests.hot.kit import in_loop, wal_server
from tests.redis_server import RedisServer
from weft.errors import Unavailable, UsageError
from weft.ports.wal_server import ServerFacts
from weft.stores.hot.facts import facts_from, refuse_unfit_server
from weft.stores.hot.policy import EVENT
from weft.stores.hot.promise import server_text, what_may_be_lost


@in_loop
async def test_a_real_server_tells_everything(own_redis: RedisServer) -> None:
    server = wal_server(own_redis)
    facts = await server.facts()
    assert facts.server in {"redis", "valkey"}
    assert facts.version
    assert facts.protocol
    assert (facts.role, facts.aof, facts.appendfsync) == ("master", True, "everysec")
    assert (facts.replicas, facts.maxmemory_policy) == (0, "noeviction")
    refuse_unfit_server(facts, own_redis.url)
    await server.close()


@pytest.mark.parametrize(
    ("settings", "described", "may_be_lost"),
    [
        ({"aof": None}, "no AOF", "all of them if Redis restarts, because it has no AOF"),
        ({"aof": "everysec"}, "AOF everysec", "those of the last second if the machine of Redis loses power"),
        ({"aof": "always"}, "AOF always", "nothing if the machine of Redis loses power"),
        (
            {"aof": "always", "no_appendfsync_on_rewrite": "yes"},
            "AOF always except during rewrites",
            "those of about the last 30 seconds if the machine of Redis loses power",
        ),
        ({"aof": "no"}, "AOF no", "those of about the last 30 seconds if the machine of Redis loses power"),
    ],
)
@in_loop
async def test_what_may_be_lost_follows_from_what_a_real_server_reports(
    settings: dict[str, str | None], described: str, may_be_lost: str
) -> None:
    redis = RedisServer(**settings)
    try:
        server = wal_server(redis.start())
        facts = await server.facts()
        assert f", {described}, 0 replicas" in server_text(facts)
        assert may_be_lost in what_may_be_lost(facts, EVENT)
        assert "fails over" not in what_may_be_lost(facts, EVENT)
        await server.close()
    finally:
        redis.remove()


@in_loop
async def test_a_real_server_with_a_replica_says_what_a_failover_may_lose(own_redis: RedisServer) -> None:
    replica = RedisServer(replica_of=own_redis)
    try:
        replica.start().wait_for_replica()
        server = wal_server(own_redis)
        facts = await server.facts()
        assert server_text(facts).endswith(", 1 replica")
        assert "those that the replica lacked if Redis fails over" in what_may_be_lost(facts, EVENT)
        await server.close()
    finally:
        replica.remove()


@in_loop
async def test_a_user_without_rights_leaves_the_facts_unknown(own_redis: RedisServer) -> None:
    own_redis.command("ACL", "SETUSER", "default", "-info", "-config")
    server = wal_server(own_redis)
    assert await server.facts() == ServerFacts()
    refuse_unfit_server(ServerFacts(), own_redis.url)
    await server.close()


@in_loop
async def test_a_server_that_does_not_let_us_in_is_not_available(own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "secret")
    server = wal_server(own_redis)
    with pytest.raises(Unavailable, match="NOAUTH"):
        await server.facts()
    await server.close()


def test_redis_has_one_version_and_valkey_two() -> None:
    assert facts_from("redis_version:7.0.15\r\n", {}).version == "7.0.15"
    valkey = facts_from("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n", {})
    assert (valkey.server, valkey.version, valkey.protocol) == ("valkey", "9.1.2", "7.2.4")


@pytest.mark.parametrize("version", ["6.2.14", "5.0", "6"])
def test_a_server_before_7_0_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=rf"is Redis {version}; the hot path needs Redis 7.0"):
        refuse_unfit_server(ServerFacts(protocol=version), "redis://cache")


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.0", "10.1.2"])
def test_later_servers_are_taken(version: str) -> None:
    refuse_unfit_server(ServerFacts(protocol=version, maxmemory_policy="noeviction"), "redis://cache")


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
def test_a_server_that_evicts_is_refused(policy: str) -> None:
    with pytest.raises(UsageError, match=f"maxmemory-policy is {policy}") as refused:
        refuse_unfit_server(ServerFacts(maxmemory_policy=policy), "redis://cache")
    assert "noeviction" in refused.value.hint
