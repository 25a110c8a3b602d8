"""One Postgres server for all systems of a benchmark run, and a database of its own for each measured process.

The server is the tests' own, with its defaults but for the socket: a commit is acknowledged when it is on disk. All
systems speak to it through a Unix socket, because peers are cut off from every network.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]

from tests.servers import Cluster

URL = "BENCH_URL"


@contextmanager
def server() -> Iterator[str]:
    """A server for the length of the block: the URL of its first database."""
    given = os.environ.get("WEFT_TEST_POSTGRES")
    if given:
        yield given
        return
    cluster = Cluster()
    try:
        cluster.start()
        yield cluster.url()
    finally:
        cluster.remove()


@contextmanager
def database(base: str, name: str) -> Iterator[str]:
    """A new database for the length of the block."""
    execute(base, f'CREATE DATABASE "{name}"')
    try:
        yield named(base, name)
    finally:
        execute(base, f'DROP DATABASE "{name}" WITH (FORCE)')


def copied(base: str, name: str, original: str) -> str:
    """A copy of a database that nobody is connected to any more."""
    execute(base, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", original)
    execute(base, f'CREATE DATABASE "{name}" TEMPLATE "{original}"')
    return named(base, name)


def named(base: str, name: str) -> str:
    """The URL of another database on the same server."""
    return urlunsplit(urlsplit(base)._replace(path=f"/{name}"))


def server_processes(url: str) -> list[int]:
    """The processes that serve a database, if the server runs on this machine: its sessions and their parent."""

    async def ask() -> list[int]:
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            return [pid for (pid,) in rows]
        finally:
            await connection.close()

    return [pid for pid in asyncio.run(ask()) if _is_postgres(pid)]


def _is_postgres(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    except OSError:
        return False


def execute(url: str, text: str, *values: object) -> None:
    async def once() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(text, *values)
        finally:
            await connection.close()

    asyncio.run(once())
