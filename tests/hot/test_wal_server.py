"""Every WAL server keeps the promises of its port."""

from collections.abc import Callable

import pytest
import uvloop

from tests.hot.kit import in_loop, new_namespace, wal_server
from tests.hot.memory_server import Disk, MemoryWalServer
from tests.redis_server import shared_redis
from weft.ports.wal_server import WalBroken, WalServer


@pytest.fixture(params=["memory", "redis"])
def connect(request: pytest.FixtureRequest) -> Callable[[], WalServer]:
    """Connects to one server, which is empty at first."""
    if request.param == "memory":
        disk = Disk()
        return lambda: MemoryWalServer(disk)
    namespace = new_namespace()
    return lambda: wal_server(shared_redis(), namespace=namespace)


@pytest.fixture
def server(connect: Callable[[], WalServer]) -> WalServer:
    return connect()


@pytest.fixture
def peer(connect: Callable[[], WalServer]) -> WalServer:
    """Another process's connection to the same server."""
    return connect()


@in_loop
async def test_entries_come_back_in_order_without_those_that_were_trimmed(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    await server.append(1, 2, b"b", None)
    await server.append(1, 3, b"c", 1)
    assert await peer.read(1) == [(2, b"b"), (3, b"c")]
    await server.trim(1, 3)
    assert await peer.read(1) == []
    await server.append(1, 4, b"d", None)
    assert await peer.read(1) == [(4, b"d")]


@in_loop
async def test_a_wal_that_was_sealed_takes_nothing_and_can_be_read(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    assert await peer.seal(1) == 1
    assert await peer.seal(1) == 1
    with pytest.raises(WalBroken, match="sealed"):
        await server.append(1, 2, b"b", None)
    assert await peer.read(1) == [(1, b"a")]


@in_loop
async def test_a_wal_that_is_not_there_cannot_be_sealed_and_has_no_entries(server: WalServer) -> None:
    assert await server.seal(1) is None
    assert await server.read(1) == []
    await server.delete(1)


@in_loop
async def test_a_gap_breaks_the_wal(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    with pytest.raises(WalBroken, match="gap"):
        await server.append(1, 2, b"b", None)
    assert await peer.read(1) == []


@in_loop
async def test_a_broken_wal_is_never_written_again(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    with pytest.raises(WalBroken):
        await server.append(1, 2, b"b", None)
    with pytest.raises(WalBroken, match="not open"):
        await server.append(1, 1, b"a", None)
    await server.begin(2)
    await server.append(2, 1, b"a", None)
    assert await peer.read(1) == []
    assert await peer.read(2) == [(1, b"a")]


@in_loop
async def test_a_deleted_wal_breaks(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    await peer.delete(1)
    with pytest.raises(WalBroken, match="gone"):
        await server.append(1, 1, b"a", None)


@in_loop
async def test_a_number_is_used_once(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    with pytest.raises(WalBroken, match="exists"):
        await peer.begin(1)
    await server.append(1, 1, b"a", None)


@in_loop
async def test_only_who_began_a_wal_appends_to_it(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    with pytest.raises(WalBroken, match="not open"):
        await peer.append(1, 1, b"a", None)
    await peer.begin(2)
    with pytest.raises(WalBroken, match="not open"):
        await peer.append(1, 1, b"a", None)
    await server.append(1, 1, b"a", None)


@in_loop
async def test_the_first_identity_stays_until_it_is_replaced(server: WalServer, peer: WalServer) -> None:
    assert await server.identity() is None
    assert await server.set_identity("one") == "one"
    assert await peer.set_identity("two") == "one"
    assert await peer.set_identity("two", replace="one") == "two"
    assert await server.identity() == "two"
    assert await peer.set_identity("two", replace="two") == "two"


@in_loop
async def test_an_identity_is_not_replaced_by_who_has_seen_another_or_none(server: WalServer) -> None:
    assert await server.set_identity("two", replace="one") == ""
    assert await server.identity() is None
    await server.set_identity("three")
    assert await server.set_identity("two", replace="one") == "three"
    assert await server.identity() == "three"


@in_loop
async def test_more_entries_than_one_answer_holds_are_all_read(server: WalServer, peer: WalServer) -> None:
    await server.begin(1)
    for n in range(1, 251):
        await server.append(1, n, b"%d" % n, None)
    assert await peer.read(1) == [(n, b"%d" % n) for n in range(1, 251)]


@in_loop
async def test_any_bytes_are_kept(server: WalServer) -> None:
    entry = bytes(range(256)) * 4096
    await server.begin(1)
    await server.append(1, 1, entry, None)
    assert await server.read(1) == [(1, entry)]


def test_the_faster_event_loop_can_write_a_wal_too() -> None:
    async def write() -> None:
        server = wal_server(shared_redis(), namespace=new_namespace())
        await server.begin(1)
        await server.append(1, 1, b"a", None)
        assert await server.read(1) == [(1, b"a")]
        await server.close()

    uvloop.run(write())
