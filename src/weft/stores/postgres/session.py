"""Open sessions with a Postgres database, and translate its errors.

``connect`` reads the settings back and refuses a server that may lose acknowledged commits. The time limits of a
session are shorter than the lease of its host, so that a host that was cut off holds no locks when others take over.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import asyncpg  # type: ignore[import-untyped]
import msgspec

from weft.errors import BadValue, Corrupt, Full, Unavailable, UsageError, WeftError, WrongSchema
from weft.stores.urls import url_without_password

# asyncpg has no type annotations.
Session: TypeAlias = Any
Record: TypeAlias = Any

SCHEMA = "weft"
CONNECT_SECONDS = 5.0
LEASE_MS = 10_000
"""The lease from which the limits of a session follow until its host sets another."""
ANSWER_LEASES = 3
"""How many leases an answer may take. This is generous, because a query without locks may be slow."""

_SYNCHRONOUS = ("on", "local", "remote_write", "remote_apply")
_VALUE_ERRORS = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
"""Errors about a value. Trying again does not help, and other values are not affected."""


class Address(msgspec.Struct, frozen=True):
    """The URL of a database, and how durable its commits must be."""

    url: str
    durability: str = "full"

    @property
    def safe_url(self) -> str:
        """Return the URL without the password."""
        return url_without_password(self.url)


def address_of(url: str, durability: str) -> Address:
    """Parse the URL of a database. Raises UsageError if it or the durability is wrong."""
    if durability not in {"full", "fast"}:
        raise UsageError(f"There is no durability {durability!r}.", hint='Use "full" (the default) or "fast".')
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(
            f"{url_without_password(url)!r} is not the URL of a database: {error}.", hint=_EXAMPLE
        ) from None
    if parts.scheme not in {"postgresql", "postgres"}:
        raise UsageError(f"{url_without_password(url)!r} is not the URL of a Postgres database.", hint=_EXAMPLE)
    return Address(url, durability)


_EXAMPLE = 'Write "postgresql://user:password@host:5432/database".'


async def connect(address: Address) -> Session:
    """Open a session with the durability of the address. Raises Unavailable or UsageError."""
    settings = {
        "search_path": SCHEMA,
        "application_name": "weft",
        "TimeZone": "UTC",
        "jit": "off",
        **session_limits(LEASE_MS),
    }
    if address.durability == "fast":
        settings["synchronous_commit"] = "off"
    with translate_errors(address):
        session: Session = await asyncpg.connect(
            address.url,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_LEASES * LEASE_MS / 1000,
            server_settings=settings,
        )
        try:
            await _check_settings(session, address)
        except BaseException:
            session.terminate()
            raise
    _set_socket_timeout(session)
    return session


def session_limits(lease_ms: int) -> dict[str, str]:
    """Return the Postgres settings that limit a session whose host has this lease."""
    third = max(100, lease_ms // 3)
    return {
        "lock_timeout": f"{third}ms",
        "idle_in_transaction_session_timeout": f"{third}ms",
        "tcp_user_timeout": f"{third}ms",
        "tcp_keepalives_idle": str(max(1, third // 1000)),
        "tcp_keepalives_interval": "1",
        "tcp_keepalives_count": "2",
    }


def _set_socket_timeout(session: Session) -> None:
    """Let the socket detect a server that disappeared, as the session settings do for the server."""
    transport = session._transport  # noqa: SLF001  # asyncpg has no public way to the socket
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6} and hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LEASE_MS // 2)


async def _check_settings(session: Session, address: Address) -> None:
    settings = await session.fetchrow(
        "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous, "
        "current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby"
    )
    assert settings is not None
    if settings["encoding"] != "UTF8":
        raise Unavailable(
            f"{address.safe_url} has the encoding {settings['encoding']}.",
            hint="Create the database with ENCODING 'UTF8'.",
        )
    if settings["standby"]:
        raise Unavailable(
            f"{address.safe_url} is a standby and cannot be written.", hint="Use the URL of the primary server."
        )
    if address.durability == "fast":
        return
    if settings["fsync"] != "on":
        raise Unavailable(
            f"{address.safe_url} has fsync = {settings['fsync']}, so a power failure may destroy the database.",
            hint='Set fsync = on, or choose durability="fast".',
        )
    if settings["synchronous"] not in _SYNCHRONOUS:
        # The server's default is too weak, because an acknowledged commit must be on disk.
        await session.execute("SET synchronous_commit = on")


@contextmanager
def translate_errors(address: Address) -> Iterator[None]:
    """Translate Postgres errors into Weft errors."""
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        raise translate_error(error, address) from error


def translate_error(error: Exception, address: Address) -> WeftError:
    """Return the Weft error for an error of the driver. Errors that are not known become Unavailable."""
    where = address.safe_url
    match error:
        case _ if isinstance(error, _VALUE_ERRORS):
            return BadValue(f"{where} cannot store this value: {error}.")
        case asyncpg.InvalidCatalogNameError():
            return Unavailable(f"{where}: {error}.", hint="Create the database: createdb NAME")
        case asyncpg.InvalidAuthorizationSpecificationError() | asyncpg.InsufficientPrivilegeError():
            return Unavailable(f"{where}: {error}.", hint="Check the user, the password and the user's rights.")
        case asyncpg.DiskFullError():
            return Full(f"{where} has no room left.", hint="Free some space; Weft continues without a restart.")
        case asyncpg.DataCorruptedError() | asyncpg.IndexCorruptedError():
            return Corrupt(f"{where} is damaged ({error}).", hint="Restore the database from a backup.")
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return WrongSchema(
                f"{where} lacks what its schema number promises ({error}).",
                hint="Restore the database from a backup, or name another database.",
            )
        case asyncpg.ReadOnlySQLTransactionError():
            return Unavailable(f"{where} cannot be written ({error}).", hint="Use the URL of the primary server.")
        case asyncpg.ClientConfigurationError():
            return UsageError(f"{where}: {error}.", hint=_EXAMPLE)
        case TimeoutError():
            return Unavailable(f"{where} did not answer in time.", hint="Check the server and the network.")
        case OSError():
            return Unavailable(f"{where} cannot be reached ({error}).", hint="Check that Postgres is running there.")
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError():
            return Unavailable(f"{where}: another session held a lock for too long ({error}).")
        case _:
            reason = str(error) or type(error).__name__
            return Unavailable(f"{where} did not answer ({reason}).", hint="Check the server and the network.")
