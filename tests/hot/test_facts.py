"""What a server says about itself is understood; servers that would lose acknowledged steps are refused."""

import pytest

from tests.hot.kit import in_loop, wal_server
from tests.redis_server import RedisServer
from weft.errors import Unavailable, UsageError
from weft.ports.wal_server import ServerFacts
from weft.stores.hot.facts import check_server, facts_from


@in_loop
async def test_a_real_server_tells_everything(own_redis: RedisServer) -> None:
    server = wal_server(own_redis)
    facts = await server.facts()
    assert facts.server in {"redis", "valkey"}
    assert facts.version
    assert facts.protocol
    assert (facts.role, facts.aof, facts.appendfsync) == ("master", True, "everysec")
    assert (facts.replicas, facts.maxmemory_policy) == (0, "noeviction")
    check_server(facts, own_redis.url)
    await server.close()


@in_loop
async def test_a_user_without_rights_leaves_the_facts_unknown(own_redis: RedisServer) -> None:
    own_redis.command("ACL", "SETUSER", "default", "-info", "-config")
    server = wal_server(own_redis)
    assert await server.facts() == ServerFacts()
    check_server(ServerFacts(), own_redis.url)
    await server.close()


@in_loop
async def test_a_server_that_does_not_let_us_in_is_not_available(own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "secret")
    server = wal_server(own_redis)
    with pytest.raises(Unavailable, match="NOAUTH"):
        await server.facts()
    await server.close()


def test_redis_has_one_version_and_valkey_two() -> None:
    assert facts_from("redis_version:7.0.15\r\n", None).version == "7.0.15"
    valkey = facts_from("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n", None)
    assert (valkey.server, valkey.version, valkey.protocol) == ("valkey", "9.1.2", "7.2.4")


@pytest.mark.parametrize("version", ["6.2.14", "5.0", "6"])
def test_a_server_before_7_0_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=rf"is Redis {version}; the hot path needs Redis 7.0"):
        check_server(ServerFacts(protocol=version), "redis://cache")


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.0", "10.1.2"])
def test_later_servers_are_taken(version: str) -> None:
    check_server(ServerFacts(protocol=version, maxmemory_policy="noeviction"), "redis://cache")


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl", "allkeys-random"])
def test_a_server_that_evicts_is_refused(policy: str) -> None:
    with pytest.raises(UsageError, match=f"maxmemory-policy is {policy}") as refused:
        check_server(ServerFacts(maxmemory_policy=policy), "redis://cache")
    assert "noeviction" in refused.value.hint
