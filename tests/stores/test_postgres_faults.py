"""Lost connections, lost servers, held locks: what was acknowledged is there, and what was not is *unknown*."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg  # type: ignore[import-untyped]
import pytest

import weft
from tests import scale, servers
from tests.contract.kit import HERE, OTHER, RUN, append, event, new
from tests.servers import Cluster, own_cluster  # noqa: F401  # a fixture
from tests.stores.proxy import Cut, Proxy
from weft.core.ids import Epoch, HostId, RunUid
from weft.errors import BadValue, StoreError, Unavailable
from weft.ports.store import Outcome
from weft.stores.postgres import PostgresStore
from weft.stores.postgres.pool import fetch_value

ACCEPTED = [Outcome.ACCEPTED]


@pytest.fixture
def url() -> str:
    return servers.database("faults")


@asynccontextmanager
async def opened(url: str, durability: str = "full") -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, durability=durability)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def wired() -> AsyncIterator[tuple[PostgresStore, Proxy]]:
    """An empty store behind a proxy, with a run that has one event."""
    url = servers.cluster().url("postgres")
    async with opened(url, "fast"):
        pass
    await asyncio.to_thread(servers.empty, url)
    proxy = Proxy(servers.cluster().socket)
    port = await proxy.open()
    try:
        async with opened(f"postgresql://postgres@127.0.0.1:{port}/postgres", "fast") as store:
            await store.log.commit([append(count=0, create=new())], HERE)
            await store.log.commit([append()], HERE)
            await store.log.commit([append(OTHER, count=0, create=new(OTHER))], HERE)
            yield store, proxy
    finally:
        await proxy.close()


@pytest.mark.parametrize(("how", "written"), [(Cut.BEFORE, 1), (Cut.AFTER, 2)])
@pytest.mark.parametrize("size", [1, 2])
def test_a_connection_lost_in_commit_is_unknown(how: Cut, written: int, size: int) -> None:
    async def scenario() -> None:
        async with wired() as (store, proxy):
            proxy.cut_next(how)
            batch = [append(seq=1), append(OTHER)][:size]
            with pytest.raises(Unavailable):
                await store.log.commit(batch, HERE)

            # Claim again, which fences it; then the log says what is true.
            (row,) = await store.log.claim([RunUid(RUN)], HERE, expected={RunUid(RUN): Epoch(1)})
            loaded = await store.log.load(RunUid(RUN), fold=1)
            assert loaded is not None
            assert (row.epoch, row.seq, len(loaded.events)) == (2, written, written)
            assert await store.log.commit([append(seq=1)], HERE) == [Outcome.STALE_EPOCH]
            assert await store.log.commit([append(seq=written, epoch=2)], HERE) == ACCEPTED

    asyncio.run(scenario())


@pytest.mark.parametrize("how", list(Cut))
def test_every_operation_survives_the_loss_of_its_connection(how: Cut) -> None:
    """Each fails as Unavailable or not at all, and works again at once."""

    async def scenario() -> None:
        async with wired() as (store, proxy):
            await store.hosts.join(HERE, lease_ms=10_000)
            questions: list[Callable[[], object]] = [
                lambda: store.log.load(RunUid(RUN), fold=1),
                lambda: store.directory.row(RunUid(RUN)),
                lambda: store.hosts.beat(HERE),
                lambda: store.hosts.find_dead(monotonic=0.0),
                lambda: store.blobs.put(b"x"),
                store.directory.counts,
            ]
            for ask in questions:
                await ask()  # type: ignore[misc]
                proxy.cut_next(how)
                with pytest.raises(Unavailable):
                    await ask()  # type: ignore[misc]
                await ask()  # type: ignore[misc]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("got result for unknown protocol state 3"),
        AttributeError("'NoneType' object has no attribute 'decode'"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        asyncpg.ReadOnlySQLTransactionError("cannot execute UPDATE in a read-only transaction"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_whatever_the_driver_raises_is_unavailable_and_its_session_is_thrown_away(url: str, error: Exception) -> None:
    async def scenario() -> None:
        async with opened(url, "fast") as store:
            assert store._parts is not None
            connection = store._parts[2]
            first = await fetch_value(connection, "SELECT pg_backend_pid()")

            async def fail(_session: object) -> None:
                raise error

            with pytest.raises(Unavailable):
                await connection.run(fail)
            assert await fetch_value(connection, "SELECT pg_backend_pid()") != first

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [asyncpg.DataError("invalid input"), BadValue("This is too long.")])
def test_an_error_about_a_value_leaves_the_session_open(url: str, error: Exception) -> None:
    async def scenario() -> None:
        async with opened(url, "fast") as store:
            assert store._parts is not None
            connection = store._parts[2]
            first = await fetch_value(connection, "SELECT pg_backend_pid()")

            async def fail(_session: object) -> None:
                raise error

            with pytest.raises(BadValue):
                await connection.run(fail)
            assert await fetch_value(connection, "SELECT pg_backend_pid()") == first

    asyncio.run(scenario())


def test_a_value_that_the_server_refuses_is_named_as_the_reason(url: str) -> None:
    async def scenario() -> None:
        async with opened(url, "fast") as store:
            await asyncio.to_thread(servers.empty, url)
            await store.log.commit([append(count=0, create=new())], HERE)
            with pytest.raises(BadValue):
                await store.log.commit([append(events=[event(1, body=b'{"a":"\x00"}')])], HERE)
            assert await store.log.commit([append()], HERE) == ACCEPTED

    asyncio.run(scenario())


def test_a_claim_waits_for_a_commit_that_is_on_its_way(url: str) -> None:
    """The lost commit may still be in the server's hands; whoever claims sees it or has fenced it."""

    async def scenario() -> None:
        async with opened(url, "fast") as store:
            await asyncio.to_thread(servers.empty, url)
            await store.log.commit([append(count=0, create=new())], HERE)
            slow = await asyncpg.connect(url, server_settings={"search_path": "weft"})
            transaction = slow.transaction()
            await transaction.start()
            await slow.execute("UPDATE runs SET seq = 1 WHERE uid = $1 AND epoch = 1 AND seq = 0", RUN)
            claim = asyncio.create_task(store.log.claim([RunUid(RUN)], HERE, expected={RunUid(RUN): Epoch(1)}))
            await _until_blocked(slow)
            assert not claim.done()

            await transaction.commit()

            assert [(row.seq, row.epoch) for row in await claim] == [(1, 2)]
            await slow.close()

    asyncio.run(scenario())


def test_a_lock_that_is_never_given_back_is_unavailable(url: str) -> None:
    async def scenario() -> None:
        async with opened(url, "fast") as store:
            await asyncio.to_thread(servers.empty, url)
            await store.hosts.join(HERE, lease_ms=300)
            await store.log.commit([append(count=0, create=new())], HERE)
            rude = await asyncpg.connect(url, server_settings={"search_path": "weft"})
            async with rude.transaction():
                await rude.execute("SELECT 1 FROM runs FOR UPDATE")
                with pytest.raises(Unavailable, match="lock"):
                    await store.log.commit([append()], HERE)
            assert await store.log.commit([append()], HERE) == ACCEPTED
            await rude.close()

    asyncio.run(scenario())


def test_a_store_that_was_closed_says_so(url: str) -> None:
    async def scenario() -> None:
        store = PostgresStore(url, durability="fast")
        await store.open()
        directory = store.directory
        await store.close()
        with pytest.raises(Unavailable, match="closed"):
            await directory.counts()

    asyncio.run(scenario())


@pytest.mark.parametrize("stops", scale.first(1, [1, 3]))
def test_a_server_that_is_stopped_at_once_loses_nothing_acknowledged(
    own_cluster: Cluster,  # noqa: F811
    stops: int,
) -> None:
    """Writers go on through restarts; what each was told is accepted is there, gap-free."""

    async def scenario() -> None:
        async with opened(own_cluster.url()) as store:
            acknowledged: dict[str, int] = {}
            restarts = asyncio.Event()
            writers = [asyncio.create_task(_write(store, f"run {n}", acknowledged, restarts)) for n in range(4)]
            for _ in range(stops):
                before = sum(acknowledged.values())
                while sum(acknowledged.values()) < before + 100:
                    await asyncio.sleep(0.005)
                await asyncio.to_thread(own_cluster.stop, signal.SIGQUIT)
                await asyncio.to_thread(own_cluster.start)
            restarts.set()
            await asyncio.gather(*writers)

            for uid, seq in acknowledged.items():
                loaded = await store.log.load(RunUid(uid), fold=1)
                assert loaded is not None
                assert [one.seq for one in loaded.events] == list(range(1, loaded.row.seq + 1))
                assert loaded.row.seq >= seq

    asyncio.run(scenario())


async def _write(store: PostgresStore, uid: str, acknowledged: dict[str, int], restarts: asyncio.Event) -> None:
    """Append one event after the other as an engine does: after *unknown*, claim, read, go on."""
    host = HostId(f"host of {uid}")
    epoch, seq = 0, 0
    created = new(uid, owner=None)
    while await _insist(store.log.create, [created]) is None:
        pass
    while not (restarts.is_set() and seq > acknowledged.get(uid, 0) - 1 and epoch):
        if not epoch:
            row = await _insist(store.directory.row, RunUid(uid))
            rows = row and await _insist(store.log.claim, [row.uid], host, expected={row.uid: row.epoch})
            if rows:
                epoch, seq = rows[0].epoch, rows[0].seq
                assert seq >= acknowledged.get(uid, 0)
            continue
        outcomes = await _insist(store.log.commit, [append(uid, seq=seq, epoch=epoch, events=[event(seq + 1)])], host)
        if outcomes == ACCEPTED:
            seq += 1
            acknowledged[uid] = seq
        else:
            epoch = 0


async def _insist(ask: Callable[..., object], *args: object, **kwargs: object) -> object:
    """The answer; None: there was none."""
    try:
        return await ask(*args, **kwargs)  # type: ignore[misc]
    except StoreError:
        await asyncio.sleep(0.01)
        return None


async def _until_blocked(connection: asyncpg.Connection) -> None:
    while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
        await asyncio.sleep(0.005)


# --- the engine on it -------------------------------------------------------------------------------------------------


def _shop(url: str) -> tuple[weft.App, list[str], weft.Workflow[[str], int]]:
    app = weft.App(url)
    done: list[str] = []

    @app.step
    async def add(key: str, number: int) -> int:
        done.append(key)
        return number + 1

    @app.workflow
    async def count(ctx: weft.Context, name: str) -> int:
        number = 0
        for turn in range(5):
            number = await add(f"{name}/{turn}", number)
        return number

    return app, done, count


CUTS_MIN = 5


@pytest.mark.proof
@pytest.mark.parametrize("runs", [2, 6])
def test_an_engine_whose_wires_are_cut_again_and_again_finishes_every_run(runs: int) -> None:
    """0 lost, and nothing performed again that was recorded: each task has one success in the log."""

    async def scenario() -> None:
        dice = random.Random(7)
        async with wired() as (_store, proxy):
            port = proxy._listener.sockets[0].getsockname()[1]  # type: ignore[union-attr]
            app, _done, count = _shop(f"postgresql://postgres@127.0.0.1:{port}/postgres")
            async with app:
                # By chance: with every n-th request cut, what takes n requests would never get through.
                proxy.judge = lambda data: dice.choice(list(Cut)) if data[:1] == b"B" and dice.random() < 0.12 else None
                handles = [await _stubborn(lambda n=n: app.start(count(f"c{n}"), id=f"c{n}")) for n in range(runs)]
                results = [await _stubborn(handle.result) for handle in handles]
                # How many requests a run takes depends on how many are written together.
                while proxy.cuts < CUTS_MIN:
                    n = len(handles)
                    handles.append(await _stubborn(lambda n=n: app.start(count(f"c{n}"), id=f"c{n}")))
                    results.append(await _stubborn(handles[-1].result))
                proxy.judge = lambda _data: None
                assert results == [5] * len(handles)
                for handle in handles:
                    kinds = [one.kind async for one in handle.events()]
                    assert (kinds.count("task_scheduled"), kinds.count("task_succeeded")) == (5, 5)

    asyncio.run(scenario())


@pytest.mark.proof
def test_an_engine_goes_on_after_its_server_was_restarted(own_cluster: Cluster) -> None:  # noqa: F811
    async def scenario() -> None:
        app, done, count = _shop(own_cluster.url())
        async with app:
            handles = [await app.start(count(f"c{n}"), id=f"c{n}") for n in range(40)]
            while len(done) < 60:
                await asyncio.sleep(0)
            await asyncio.to_thread(own_cluster.stop, signal.SIGQUIT)
            await asyncio.to_thread(own_cluster.start)
            assert [await _stubborn(handle.result) for handle in handles] == [5] * 40

    asyncio.run(scenario())


async def _stubborn(ask: Callable[[], object]) -> object:
    while True:
        try:
            return await ask()  # type: ignore[misc]
        except StoreError:
            await asyncio.sleep(0.01)
