"""An emptied or replaced Redis is never taken for the one that the deployment uses, until all hosts agree on it."""

from collections.abc import Sequence

import msgspec
import pytest

from tests.hot.kit import in_loop
from tests.hot.memory_server import Disk, MemoryWalServer
from weft.core.ids import HostId
from weft.ports.wals import Wals
from weft.stores.hot.recognition import PATIENCE_SECONDS, RedisRecognition
from weft.stores.memory import MemoryStore

ONE, TWO = HostId("one"), HostId("two")


class Deployment:
    """Hosts on one durable store, each with the Redis that it reaches, and a clock that the test moves."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.now = 0.0
        self.alive: list[HostId] = []

    async def join(self, host: HostId, disk: Disk) -> RedisRecognition:
        await self.store.hosts.join(host, lease_ms=5_000)
        self.alive.append(host)
        return RedisRecognition(MemoryWalServer(disk), self.wals, host, self._living, lambda: self.now)

    @property
    def wals(self) -> Wals:
        assert self.store.wals is not None
        return self.store.wals

    async def _living(self) -> Sequence[HostId]:
        return self.alive


@in_loop
async def test_the_first_host_marks_the_server_and_the_others_recognise_it() -> None:
    deployment, disk = Deployment(), Disk()
    first, second = await deployment.join(ONE, disk), await deployment.join(TWO, disk)
    value = await first.recognise()
    assert value
    assert disk.identity == value
    assert await second.recognise() == value
    assert await deployment.wals.redis_id() == value
    assert await deployment.wals.seen_redis_ids() == {ONE: value, TWO: value}


@in_loop
async def test_an_emptied_server_is_used_again_after_a_minute() -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    before = await host.recognise()
    disk.empty()
    assert await host.recognise() is None
    assert "was emptied" in host.problem
    deployment.now += PATIENCE_SECONDS - 1
    assert await host.recognise() is None
    deployment.now += 1
    after = await host.recognise()
    assert after not in {None, before}
    assert disk.identity == after
    assert not host.problem


@in_loop
async def test_a_host_with_another_server_waits_while_a_living_host_sees_the_right_one() -> None:
    deployment, ours, other = Deployment(), Disk(), Disk(identity="other")
    first, second = await deployment.join(ONE, ours), await deployment.join(TWO, other)
    value = await first.recognise()
    for _ in range(5):
        assert await second.recognise() is None
        deployment.now += PATIENCE_SECONDS
    assert "another one" in second.problem
    deployment.alive.remove(ONE)
    assert await second.recognise() is None
    deployment.now += PATIENCE_SECONDS
    agreed = await second.recognise()
    assert agreed not in {None, value, "other"}
    assert other.identity == agreed
    assert await first.recognise() is None


@in_loop
async def test_two_hosts_that_agree_at_once_end_with_one_value() -> None:
    deployment, disk = Deployment(), Disk()
    first, second = await deployment.join(ONE, disk), await deployment.join(TWO, disk)
    await first.recognise()
    await second.recognise()
    disk.empty()
    for _ in range(2):  # in the first round, each has still seen the right value
        assert [await first.recognise(), await second.recognise()] == [None, None]
    deployment.now += PATIENCE_SECONDS
    agreed = await first.recognise()
    assert await second.recognise() == agreed
    assert disk.identity == agreed


@in_loop
async def test_a_server_that_has_its_old_content_back_is_ours_at_once() -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    value = await host.recognise()
    saved = disk.save()
    disk.empty()
    assert await host.recognise() is None
    disk.restore(saved)
    assert await host.recognise() == value


@in_loop
async def test_a_server_that_does_not_answer_is_no_reason_to_agree_on_another_value() -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    value = await host.recognise()
    disk.away = True
    for _ in range(3):
        assert await host.recognise() is None
        deployment.now += PATIENCE_SECONDS
    assert host.problem == "The WAL server does not answer."
    assert await deployment.wals.seen_redis_ids() == {ONE: None}
    disk.away = False
    assert await host.recognise() == value


@in_loop
async def test_a_server_that_evicts_or_is_too_old_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    disk.facts = msgspec.structs.replace(disk.facts, maxmemory_policy="allkeys-lru")
    assert await host.recognise() is None
    assert await host.recognise() is None
    assert "evicts keys" in host.problem
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    disk.facts = msgspec.structs.replace(disk.facts, maxmemory_policy="noeviction", protocol="6.2.0")
    assert await host.recognise() is None
    assert "needs Redis 7.0" in host.problem


@pytest.mark.parametrize("when", ["first", "later", "emptied"])
@in_loop
async def test_a_server_that_takes_no_writes_is_not_used_and_named(when: str) -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    if when != "first":
        assert await host.recognise()
    if when == "emptied":
        disk.empty()
        await host.recognise()
        deployment.now += PATIENCE_SECONDS
    disk.refusal = "OOM"
    assert await host.recognise() is None
    assert host.problem == "The WAL server refuses writes: OOM."
    disk.refusal = ""
    assert await host.recognise() == disk.identity
    assert not host.problem


@in_loop
async def test_who_has_agreed_on_a_new_value_says_that_it_sees_it() -> None:
    deployment, disk = Deployment(), Disk()
    host = await deployment.join(ONE, disk)
    await host.recognise()
    disk.empty()
    await host.recognise()
    deployment.now += PATIENCE_SECONDS

    agreed = await host.recognise()

    assert await deployment.wals.seen_redis_ids() == {ONE: agreed}


@in_loop
async def test_the_minute_begins_again_when_a_living_host_sees_the_right_value() -> None:
    deployment, ours, other = Deployment(), Disk(), Disk(identity="other")
    first, second = await deployment.join(ONE, ours), await deployment.join(TWO, other)
    await first.recognise()
    deployment.alive.remove(ONE)
    await second.recognise()
    deployment.now += PATIENCE_SECONDS / 2
    deployment.alive.append(ONE)
    await second.recognise()
    deployment.alive.remove(ONE)
    deployment.now += PATIENCE_SECONDS / 2

    assert await second.recognise() is None
    deployment.now += PATIENCE_SECONDS
    assert await second.recognise()
