"""Whatever a real server does instead of acknowledging an entry breaks the WAL, and nothing else."""

import asyncio

import pytest

from tests.hot.kit import in_loop, wal_server
from tests.redis_server import RedisServer
from weft.errors import Unavailable
from weft.ports.wal_server import WalBroken
from weft.stores.hot.redis_wal_server import RedisWalServer

SOON_S = 0.2
"""A time limit that is meant to be reached."""


@pytest.fixture
def server(own_redis: RedisServer) -> RedisWalServer:
    return wal_server(own_redis)


@pytest.fixture
def peer(own_redis: RedisServer) -> RedisWalServer:
    return wal_server(own_redis)


@in_loop
async def test_a_full_server_breaks_the_wal_and_keeps_what_it_had(
    own_redis: RedisServer, server: RedisWalServer
) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    own_redis.command("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(WalBroken, match="OOM"):
        await server.append(1, 2, b"b", None)
    assert await server.read(1) == [(1, b"a")]
    with pytest.raises(WalBroken, match="OOM"):
        await server.begin(2)


@in_loop
async def test_the_wal_of_a_dead_host_can_be_sealed_read_and_deleted_on_a_full_server(
    own_redis: RedisServer, server: RedisWalServer, peer: RedisWalServer
) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    own_redis.command("CONFIG", "SET", "maxmemory", "1mb")
    assert await peer.seal(1) == 1
    assert await peer.read(1) == [(1, b"a")]
    await peer.delete(1)
    assert own_redis.command("KEYS", "*:log") == []


@in_loop
async def test_who_asks_for_the_identity_of_a_server_may_ask_whether_it_can_be_written(
    own_redis: RedisServer, server: RedisWalServer
) -> None:
    assert await server.set_identity("one") == "one"
    own_redis.command("CONFIG", "SET", "maxmemory", "1mb")
    assert await server.identity() == "one"
    with pytest.raises(Unavailable, match="OOM"):
        await server.set_identity("one", replace="one")
    own_redis.command("CONFIG", "SET", "maxmemory", "0")
    assert await server.set_identity("one", replace="one") == "one"
    own_redis.command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(Unavailable, match="READONLY"):
        await server.set_identity("one", replace="one")


@pytest.mark.parametrize("head", ["garbage", "sealed", "sealed many", "", b"\xff"])
@in_loop
async def test_a_head_that_nobody_wrote_like_that_is_a_server_that_cannot_be_used(
    own_redis: RedisServer, server: RedisWalServer, head: str | bytes
) -> None:
    own_redis.command("SET", "weft:{test.1}:head", head)
    for _ in range(2):
        with pytest.raises(Unavailable, match="the head of write-ahead log 1 is"):
            await server.seal(1)


@in_loop
async def test_keys_of_another_type_are_a_server_that_cannot_be_used(
    own_redis: RedisServer, server: RedisWalServer
) -> None:
    await server.begin(1)
    own_redis.command("SET", "weft:{test.1}:log", "a")
    with pytest.raises(Unavailable, match="WRONGTYPE"):
        await server.read(1)
    with pytest.raises(WalBroken, match="WRONGTYPE"):
        await server.append(1, 1, b"a", None)
    own_redis.command("DEL", "weft:{test.1}:head")
    own_redis.command("LPUSH", "weft:{test.1}:head", "0")
    with pytest.raises(Unavailable, match="WRONGTYPE"):
        await server.seal(1)


@in_loop
async def test_a_primary_that_becomes_a_replica_breaks_the_wal(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    own_redis.command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(WalBroken, match="READONLY"):
        await server.append(1, 1, b"a", None)
    for wal in (1, 2):
        with pytest.raises(Unavailable, match="READONLY"):
            await server.seal(wal)


@in_loop
async def test_a_server_without_enough_replicas_breaks_the_wal(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    own_redis.command("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(WalBroken, match="NOREPLICAS"):
        await server.append(1, 1, b"a", None)


@in_loop
async def test_a_server_that_forgot_the_script_breaks_the_wal(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    own_redis.command("SCRIPT", "FLUSH")
    with pytest.raises(WalBroken, match="NOSCRIPT"):
        await server.append(1, 1, b"a", None)
    await server.begin(2)
    await server.append(2, 1, b"a", None)


@in_loop
async def test_an_emptied_server_breaks_the_wal(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    own_redis.flush()
    with pytest.raises(WalBroken, match="gone"):
        await server.append(1, 2, b"b", None)


@in_loop
async def test_a_killed_server_breaks_the_wal_even_when_it_is_back_with_everything(
    own_redis: RedisServer, server: RedisWalServer
) -> None:
    # Every second, it may answer before it writes: while its disk is busy.
    own_redis.command("CONFIG", "SET", "appendfsync", "always")
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    own_redis.restart()
    with pytest.raises(WalBroken, match="connection"):
        await server.append(1, 2, b"b", None)
    with pytest.raises(WalBroken, match="not open"):
        await server.append(1, 2, b"b", None)
    assert await server.read(1) == [(1, b"a")]
    await server.begin(2)
    await server.append(2, 1, b"b", None)


@in_loop
async def test_a_server_that_dies_with_a_request_in_hand_breaks_the_wal(
    own_redis: RedisServer, server: RedisWalServer
) -> None:
    await server.begin(1)
    own_redis.freeze()
    request = asyncio.ensure_future(server.append(1, 1, b"a", None))
    await asyncio.sleep(0)
    own_redis.kill()
    with pytest.raises(WalBroken, match="connection"):
        await request
    with pytest.raises(Unavailable):
        await server.begin(2)
    with pytest.raises(Unavailable):
        await server.read(1)


@in_loop
async def test_a_slow_server_breaks_the_wal_though_it_has_the_entry(own_redis: RedisServer) -> None:
    server = wal_server(own_redis, limit_s=SOON_S)
    await server.begin(1)
    own_redis.freeze()
    with pytest.raises(WalBroken, match="no answer within"):
        await server.append(1, 1, b"a", None)
    with pytest.raises(Unavailable):
        await server.identity()
    own_redis.thaw()
    with pytest.raises(WalBroken, match="not open"):
        await server.append(1, 2, b"b", None)
    assert await server.seal(1) in {0, 1}
    assert {n for n, _ in await server.read(1)} <= {1}
    await server.close()


@in_loop
async def test_a_request_that_is_cancelled_breaks_the_wal(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    own_redis.freeze()
    request = asyncio.ensure_future(server.append(1, 1, b"a", None))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    own_redis.thaw()
    with pytest.raises(WalBroken, match="not open"):
        await server.append(1, 2, b"b", None)


@in_loop
async def test_a_primary_that_lost_entries_shows_a_gap(own_redis: RedisServer, server: RedisWalServer) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    await server.append(1, 2, b"b", None)
    own_redis.command("SET", "weft:{test.1}:head", 1)
    with pytest.raises(WalBroken, match="gap: the head is b'1'"):
        await server.append(1, 3, b"c", None)


@in_loop
async def test_what_another_has_sealed_refuses_the_owner_in_one_step(
    server: RedisWalServer, peer: RedisWalServer
) -> None:
    await server.begin(1)
    appends = [asyncio.ensure_future(server.append(1, 1, b"a", None)), asyncio.ensure_future(peer.seal(1))]
    results = await asyncio.gather(*appends, return_exceptions=True)
    entries = await peer.read(1)
    assert (results[0] is None) == bool(entries)
    assert results[1] == len(entries)


@in_loop
async def test_a_cluster_spreads_wals_and_each_is_found(two_nodes: list[RedisServer]) -> None:
    first, second = wal_server(two_nodes[0]), wal_server(two_nodes[1])
    assert await first.set_identity("one") == await second.identity()
    for wal in range(1, 9):
        await first.begin(wal)
        await first.append(wal, 1, b"%d" % wal, None)
    assert [await second.read(wal) for wal in range(1, 9)] == [[(1, b"%d" % wal)] for wal in range(1, 9)]
    assert all(int(str(node.command("DBSIZE"))) > 0 for node in two_nodes)
    assert await second.seal(8) == 1
    with pytest.raises(WalBroken, match="sealed"):
        await first.append(8, 2, b"b", None)
    for one in (first, second):
        await one.close()
