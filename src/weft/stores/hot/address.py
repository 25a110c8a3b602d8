"""URLs of Redis servers. Pure: nothing is connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from weft.errors import UsageError
from weft.stores.urls import url_without_password

if TYPE_CHECKING:
    import ssl

PORT: Final = 6379
EXAMPLE: Final = 'Write "redis://user:password@host:6379/0", or "rediss://…" for TLS.'
TLS_OPTIONS: Final[tuple[str, ...]] = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Options of a rediss:// URL, each the path of a file. redis-py has them under the same names."""


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, and how to sign in."""

    url: str
    host: str
    port: int = PORT
    path: str = ""
    """The path of a socket, in place of host and port."""
    user: str = ""
    password: str = ""
    database: int = 0
    tls: bool = False
    files: dict[str, str] = {}

    @property
    def safe_url(self) -> str:
        """Return the URL without the password."""
        return url_without_password(self.url)

    def at(self, host: str, port: int) -> RedisAddress:
        """Return the address of another node of the same cluster."""
        return msgspec.structs.replace(self, host=host or self.host, port=port)

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return how to check the server's certificate; None without TLS. Raises UsageError if a file is wrong."""
        if not self.tls:
            return None
        import ssl  # noqa: PLC0415 - slow to import, and an address is parsed without it

        try:
            context = ssl.create_default_context(cafile=self.files.get("ssl_ca_certs"))
            if certificate := self.files.get("ssl_certfile"):
                context.load_cert_chain(certificate, self.files.get("ssl_keyfile"))
        except OSError as error:
            raise UsageError(
                f"The certificates for {self.safe_url} cannot be read: {error}.",
                hint=f"Check the paths in the URL: {', '.join(sorted(self.files))}.",
            ) from error
        return context


def redis_address(url: str) -> RedisAddress:
    """Parse the URL of a Redis server. Raises UsageError if it is wrong."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(
            f"{url_without_password(url)!r} is not the URL of a Redis server: {error}.", hint=EXAMPLE
        ) from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    is_socket = parts.scheme == "unix"
    if parts.scheme not in {"redis", "rediss", "unix"} or not (parts.path if is_socket else parts.hostname):
        raise UsageError(f"{url_without_password(url)!r} is not the URL of a Redis server.", hint=EXAMPLE)
    database = options.pop("db", "") if is_socket else parts.path.strip("/")
    if database and not (database.isascii() and database.isdigit()):
        raise UsageError(f"{database!r} in {url_without_password(url)} is not the number of a database.", hint=EXAMPLE)
    files = {name: options.pop(name) for name in TLS_OPTIONS if parts.scheme == "rediss" and name in options}
    if options:
        raise UsageError(
            f"{url_without_password(url)} has options that are not known: {', '.join(sorted(options))}.",
            hint=f"Known options: {', '.join(TLS_OPTIONS)} with rediss://, and db with unix://.",
        )
    return RedisAddress(
        url=url,
        host=parts.hostname or "",
        port=port or PORT,
        path=unquote(parts.path) if is_socket else "",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=int(database or 0),
        tls=parts.scheme == "rediss",
        files=files,
    )
