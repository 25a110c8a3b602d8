"""Opening a Postgres store: the schema, step by step or at once; what is refused, and what it says."""

import asyncio
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from tests import scale, servers
from tests.servers import Cluster
from weft.errors import BadValue, Corrupt, Full, NewerSchema, Unavailable, UsageError, WeftError, WrongSchema
from weft.stores import open_store
from weft.stores.postgres import PostgresStore, migrate, pending_migrations
from weft.stores.postgres.schema import MIGRATIONS, NEWEST, apply_migrations, missing_tables
from weft.stores.postgres.session import LEASE_MS, address_of, connect, session_limits, translate_error

SCHEMA = Path(__file__).parent / "postgres_schema.txt"
"""What all migrations together make. A migration that was released never changes; a new one changes this."""

_DESCRIBE = """
SELECT format('table %s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
              pg_get_expr(d.adbin, d.adrelid)) AS line
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'weft'::regnamespace AND c.relkind IN ('r', 'p', 'v')
UNION ALL SELECT format('options %s %s', relname, reloptions) FROM pg_class
WHERE relnamespace = 'weft'::regnamespace AND reloptions IS NOT NULL
UNION ALL SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'weft'
UNION ALL SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'weft'::regnamespace AND contype <> 'n'
UNION ALL SELECT format('function %s(%s) %s', proname, pg_get_function_arguments(oid), md5(prosrc)) FROM pg_proc
WHERE pronamespace = 'weft'::regnamespace
ORDER BY 1
"""


@pytest.fixture
def url() -> Iterator[str]:
    """A database without anything in it."""
    found = servers.database("opening")
    servers.run(_execute(found, "DROP SCHEMA IF EXISTS weft CASCADE"))
    yield found
    servers.run(_execute(found, "DROP SCHEMA IF EXISTS weft CASCADE"))


async def _execute(url: str, text: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(text)
    await connection.close()


async def _value(url: str, text: str) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(text)
    finally:
        await connection.close()


def described(url: str) -> str:
    async def ask() -> str:
        connection = await asyncpg.connect(url)
        try:
            lines = [line for (line,) in await connection.fetch(_DESCRIBE)]
        finally:
            await connection.close()
        digests = [f"file {one.number} {one.name} {hashlib.sha256(one.sql.encode()).hexdigest()}" for one in MIGRATIONS]
        return "".join(f"{line}\n" for line in (*digests, *lines))

    return asyncio.run(ask())


def open_and_close(url: str, **options: Any) -> None:
    async def scenario() -> None:
        store = PostgresStore(url, **options)
        await store.open()
        await store.close()

    asyncio.run(scenario())


def test_tables_that_were_dropped_are_named(url: str) -> None:
    open_and_close(url)
    assert asyncio.run(missing_tables(url)) == []
    servers.run(_execute(url, "DROP TABLE weft.events_3, weft.queues CASCADE"))
    assert asyncio.run(missing_tables(url)) == ["events_3", "queues"]


def test_a_new_database_gets_the_schema_that_is_written_down(url: str) -> None:
    open_and_close(url)

    assert described(url) == SCHEMA.read_text("utf-8")


@pytest.mark.parametrize("upto", scale.sample(4, [one.number for one in MIGRATIONS[:-1]]))
def test_an_older_database_gets_the_same(url: str, upto: int) -> None:
    async def scenario() -> None:
        address = address_of(url, "fast")
        connection = await connect(address)
        made = await apply_migrations(connection, address, upto)
        await connection.close()
        assert [one.number for one in made] == list(range(1, upto + 1))

    asyncio.run(scenario())

    open_and_close(url)

    assert described(url) == SCHEMA.read_text("utf-8")


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [one.number for one in MIGRATIONS] == list(range(1, NEWEST + 1))


def test_hosts_that_start_together_make_one_schema(url: str) -> None:
    async def scenario() -> None:
        stores = [PostgresStore(url) for _ in range(6)]
        await asyncio.gather(*[store.open() for store in stores])
        for store in stores:
            await store.close()

    asyncio.run(scenario())

    assert described(url) == SCHEMA.read_text("utf-8")


def test_what_is_pending_is_told_without_changing_anything(url: str) -> None:
    told = asyncio.run(pending_migrations(url))

    assert [one.number for one in told] == [one.number for one in MIGRATIONS]
    assert "CREATE TABLE runs" in told[0].sql
    assert asyncio.run(_value(url, "SELECT to_regnamespace('weft')")) is None


def test_migrating_applies_what_is_pending_once(url: str) -> None:
    assert [one.number for one in asyncio.run(migrate(url))] == [one.number for one in MIGRATIONS]
    assert asyncio.run(migrate(url)) == []
    assert asyncio.run(pending_migrations(url)) == []


def test_a_database_of_a_newer_weft_is_refused(url: str) -> None:
    open_and_close(url)
    asyncio.run(_execute(url, f"INSERT INTO weft.migrations VALUES ({NEWEST + 1}, 'later', now())"))

    with pytest.raises(NewerSchema, match=f"schema {NEWEST + 1}") as caught:
        open_and_close(url)

    assert "pip install" in caught.value.hint


def test_a_schema_of_another_program_is_left_alone(url: str) -> None:
    asyncio.run(_execute(url, "CREATE SCHEMA weft; CREATE TABLE weft.looms (id int)"))

    with pytest.raises(Corrupt, match="not Weft's"):
        open_and_close(url)

    assert asyncio.run(_value(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'weft'")) == 1


def test_a_user_who_may_not_create_tables_can_use_what_is_there(url: str) -> None:
    open_and_close(url)
    asyncio.run(
        _execute(
            url,
            "DROP ROLE IF EXISTS weaver; CREATE ROLE weaver LOGIN; GRANT USAGE ON SCHEMA weft TO weaver; "
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weft TO weaver",
        )
    )

    open_and_close(re.sub(r"//[^@/]*@", "//weaver@", url))


def test_a_commit_waits_for_the_disk_whatever_the_servers_default(url: str) -> None:
    async def setting(durability: str) -> str:
        connection = await connect(address_of(url, durability))
        try:
            return str(await connection.fetchval("SHOW synchronous_commit"))
        finally:
            await connection.close()

    name = url.partition("?")[0].rpartition("/")[2]
    for default, full in (("off", "on"), ("remote_write", "remote_write"), ("on", "on")):
        asyncio.run(_execute(url, f'ALTER DATABASE "{name}" SET synchronous_commit = {default}'))
        assert (asyncio.run(setting("full")), asyncio.run(setting("fast"))) == (full, "off")
    asyncio.run(_execute(url, f'ALTER DATABASE "{name}" RESET synchronous_commit'))


def test_a_server_that_forgets_is_refused() -> None:
    cluster = Cluster(fsync="off")
    try:
        cluster.start()
        with pytest.raises(Unavailable, match="fsync = off") as caught:
            open_and_close(cluster.url())
        assert 'durability="fast"' in caught.value.hint
        open_and_close(cluster.url(), durability="fast")
    finally:
        cluster.remove()


def test_sessions_give_up_their_locks_before_a_lease_ends(url: str) -> None:
    async def limits(lease_ms: int) -> dict[str, str]:
        store = PostgresStore(url)
        await store.open()
        await store.hosts.join("here", lease_ms=lease_ms)  # type: ignore[arg-type]
        found = {}
        for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
            found[name] = await store.directory._pool.run(
                lambda connection, name=name: connection.fetchval(
                    "SELECT setting FROM pg_settings WHERE name = $1", name
                )
            )
        await store.close()
        return found

    for lease_ms in (LEASE_MS, 3_000, 60_000):
        for name, value in asyncio.run(limits(lease_ms)).items():
            assert f"{value}ms" == session_limits(lease_ms)[name]
            assert int(value) < lease_ms


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda url: re.sub(r"/opening", "/nosuch", url), "does not exist"),
        (lambda _url: "postgresql://localhost:1/weft", "cannot be reached"),
        (lambda url: re.sub(r"//[^@/]*@", "//nobody@", url), "nobody"),
    ],
)
def test_a_database_that_cannot_be_reached_is_unavailable(url: str, change: Any, says: str) -> None:
    with pytest.raises(Unavailable, match=says) as caught:
        open_and_close(change(servers.cluster().url("opening")))

    assert caught.value.hint


def test_a_password_is_never_shown() -> None:
    store = open_store("postgresql://anna:secret@localhost:1/weft?sslmode=disable")

    assert store.url == "postgresql://anna:***@localhost:1/weft?sslmode=disable"
    with pytest.raises(Unavailable) as caught:
        asyncio.run(store.open())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://localhost:port/weft", "postgresql://[::1/weft"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not the URL of a") as caught:
        open_store(url)

    assert "postgresql://user" in caught.value.hint


def test_durability_is_full_or_fast() -> None:
    with pytest.raises(UsageError, match="durability"):
        open_store("postgresql://localhost/weft", durability="fastest")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.DiskFullError, Full),
        (asyncpg.DataCorruptedError, Corrupt),
        (asyncpg.IndexCorruptedError, Corrupt),
        (asyncpg.ReadOnlySQLTransactionError, Unavailable),
        (asyncpg.AdminShutdownError, Unavailable),
        (asyncpg.CannotConnectNowError, Unavailable),
        (asyncpg.TooManyConnectionsError, Unavailable),
        (asyncpg.QueryCanceledError, Unavailable),
        (asyncpg.DeadlockDetectedError, Unavailable),
        (asyncpg.SerializationError, Unavailable),
        (asyncpg.LockNotAvailableError, Unavailable),
        (asyncpg.IdleInTransactionSessionTimeoutError, Unavailable),
        (asyncpg.ConnectionDoesNotExistError, Unavailable),
        (asyncpg.InterfaceError, Unavailable),
        (asyncpg.InvalidPasswordError, Unavailable),
        (ConnectionResetError, Unavailable),
        (TimeoutError, Unavailable),
        (asyncpg.UniqueViolationError, Unavailable),
        (asyncpg.UndefinedTableError, WrongSchema),
        (asyncpg.InternalClientError, Unavailable),
        (AttributeError, Unavailable),
        (asyncpg.CharacterNotInRepertoireError, BadValue),
        (asyncpg.ProgramLimitExceededError, BadValue),
    ],
)
def test_every_error_of_the_server_has_a_meaning(error: type[Exception], kind: type[WeftError]) -> None:
    meant = translate_error(error("said so"), address_of("postgresql://anna:secret@localhost/weft", "full"))

    assert type(meant) is kind
    assert "secret" not in str(meant)
