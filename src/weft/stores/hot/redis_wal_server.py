"""WALs in a Redis or Valkey server.

The WAL of this process is written on a connection of its own, which is opened by ``begin`` and by nothing else: when it
is gone, so is the WAL. Everything else goes over a second connection, opened when it is needed, and may be asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from weft.errors import Unavailable
from weft.ports.wal_server import ServerFacts, WalBroken
from weft.stores.hot.address import RedisAddress
from weft.stores.hot.connection import ConnectionLost, RedisConnection, Reply, ServerRefusal, Word, connect
from weft.stores.hot.facts import SECTIONS, facts_from
from weft.stores.hot.wal_script import APPEND, GONE, MARK, OK, SEAL, SEALED, WalKeys, identity_key, wal_keys

T = TypeVar("T")

ENTRIES_PER_READ: Final = 100
MOVES_MAX: Final = 5
"""How often one request is sent on to another node of a cluster."""


class RedisWalServer:
    """Implements the port ``WalServer``. ``namespace`` returns the id of the deployment; it is asked once."""

    def __init__(self, address: RedisAddress, namespace: Callable[[], Awaitable[str]], *, limit_s: float) -> None:
        self.address = address
        self.url = address.safe_url
        self._ask_namespace = namespace
        self._namespace = ""
        self._limit_s = limit_s
        self._writer: _Writer | None = None
        self._nodes: dict[tuple[str, int], RedisConnection] = {}
        self._connecting = asyncio.Lock()

    # --- whose server it is ------------------------------------------------------------------------------------------

    async def facts(self) -> ServerFacts:
        """Ask the server about itself. What it does not want to tell is unknown."""
        await self._send_with_redirects("PING")
        info = b"\n".join([await self._send_optional("INFO", section) for section in SECTIONS])
        told = await self._send_optional("CONFIG", "GET", "appendfsync", "no-appendfsync-on-rewrite")
        settings = [word.decode() for word in told] if isinstance(told, list) else []
        return facts_from(info.decode("utf-8", "replace"), dict(zip(settings[::2], settings[1::2], strict=True)))

    async def identity(self) -> str | None:
        """Return the value that marks this server's data."""
        value = await self._send_with_redirects("GET", identity_key(await self._known_namespace()))
        return None if value is None else str(value, "utf-8", "replace")

    async def set_identity(self, value: str, *, replace: str | None = None) -> str:
        """Mark the data with a value if it has the given one, or none."""
        holds = await self._send_with_redirects(
            "EVAL", MARK, 1, identity_key(await self._known_namespace()), value, replace or ""
        )
        return str(holds, "utf-8", "replace")

    # --- the WAL of this process -------------------------------------------------------------------------------------

    async def begin(self, wal: int) -> None:
        """Open a new connection for writing, and create the WAL over it."""
        self._end_writer()
        keys = wal_keys(await self._known_namespace(), wal)
        try:
            self._writer = await self._try_nodes(lambda address: self._begin_at(address, wal, keys))
        except ConnectionLost as error:
            raise self._unavailable_error(error) from error
        except ServerRefusal as error:
            raise WalBroken(str(error)) from error

    async def _begin_at(self, address: RedisAddress, wal: int, keys: WalKeys) -> _Writer:
        connection = await connect(address, self._limit_s)
        try:
            script = await connection.request("SCRIPT", "LOAD", APPEND)
            created = await connection.request("SET", keys.head, 0, "NX")
        except BaseException:
            connection.abort()
            raise
        if created is None:
            connection.abort()
            raise WalBroken("exists")
        return _Writer(connection, script, wal, keys)

    async def append(self, wal: int, n: int, entry: bytes, trim: int | None) -> None:
        """Add an entry, on the connection that began the WAL."""
        writer = self._open_writer(wal)
        kept = () if trim is None else (trim + 1,)
        answer = await self._send_once(writer, "EVALSHA", writer.script, 2, *writer.keys, n - 1, n, entry, *kept)
        if answer != OK:
            self._end_writer()
            raise WalBroken(_refusal_reason(answer))

    async def trim(self, wal: int, upto: int) -> None:
        """Remove entries, on the connection that began the WAL."""
        writer = self._open_writer(wal)
        await self._send_once(writer, "XTRIM", writer.keys.log, "MINID", "=", f"{upto + 1}-0")

    # --- anybody's WAL -----------------------------------------------------------------------------------------------

    async def seal(self, wal: int) -> int | None:
        """End a WAL for ever, if it is there."""
        keys = wal_keys(await self._known_namespace(), wal)
        head = await self._send_with_redirects("EVAL", SEAL, 1, keys.head)
        if head is None:
            return None
        number = head.removeprefix(SEALED).strip()
        if not number.isdigit():
            raise self._unavailable_error(f"the head of write-ahead log {wal} is {head!r}")
        return int(number)

    async def read(self, wal: int) -> Sequence[tuple[int, bytes]]:
        """Return all entries of a WAL."""
        log = wal_keys(await self._known_namespace(), wal).log
        entries: list[tuple[int, bytes]] = []
        while True:
            after = f"({entries[-1][0]}-0" if entries else "-"
            page = await self._send_with_redirects("XRANGE", log, after, "+", "COUNT", ENTRIES_PER_READ)
            entries += [(int(name.partition(b"-")[0]), fields[1]) for name, fields in page]
            if len(page) < ENTRIES_PER_READ:
                return entries

    async def delete(self, wal: int) -> None:
        """Remove both keys of a WAL."""
        keys = wal_keys(await self._known_namespace(), wal)
        await self._send_with_redirects("UNLINK", keys.log, keys.head)

    async def close(self) -> None:
        """Close all connections."""
        self._end_writer()
        for connection in self._nodes.values():
            connection.abort()
        self._nodes.clear()

    # --- the connection that writes ----------------------------------------------------------------------------------

    def _open_writer(self, wal: int) -> _Writer:
        if self._writer is None or self._writer.wal != wal:
            raise WalBroken("not open")
        return self._writer

    async def _send_once(self, writer: _Writer, *words: Word) -> Reply:
        """Send a request that must not be sent twice. Whatever goes wrong ends the writer."""
        try:
            return await writer.connection.request(*words)
        except (ConnectionLost, ServerRefusal) as error:
            self._end_writer()
            raise WalBroken(str(error)) from error
        except BaseException:
            self._end_writer()
            raise

    def _end_writer(self) -> None:
        if self._writer is not None:
            self._writer.connection.abort()
            self._writer = None

    # --- all other requests, each of which may be repeated -----------------------------------------------------------

    async def _send_optional(self, *words: Word) -> Reply:
        """Send a request that a server may refuse: managed ones hide their settings, users may lack rights."""
        try:
            return await self._send_to_node(self.address, *words)
        except ServerRefusal:
            return b""

    async def _send_with_redirects(self, *words: Word) -> Reply:
        try:
            return await self._try_nodes(lambda address: self._send_to_node(address, *words))
        except ServerRefusal as error:
            raise self._unavailable_error(error) from error

    async def _send_to_node(self, address: RedisAddress, *words: Word) -> Reply:
        node = (address.host, address.port)
        try:
            async with self._connecting:
                connection = self._nodes.get(node)
                if connection is None or not connection.is_open:
                    connection = self._nodes[node] = await connect(address, self._limit_s)
            return await connection.request(*words)
        except ConnectionLost as error:
            raise self._unavailable_error(error) from error

    async def _try_nodes(self, attempt: Callable[[RedisAddress], Awaitable[T]]) -> T:
        """Try at the server that was named, then at the nodes that a cluster names in ``MOVED slot host:port``."""
        address = self.address
        for _ in range(MOVES_MAX):
            try:
                return await attempt(address)
            except ServerRefusal as error:
                if error.kind != "MOVED":
                    raise
                host, _, port = str(error).rpartition(" ")[2].rpartition(":")
                address = self.address.at(host, int(port))
        raise Unavailable(f"The nodes of the cluster at {self.url} send each request to another node.")

    def _unavailable_error(self, error: Exception | str) -> Unavailable:
        return Unavailable(
            f"The Redis server at {self.url} cannot be used: {error}.",
            hint="Runs go on without it, at the speed of the durable store.",
        )

    async def _known_namespace(self) -> str:
        if not self._namespace:
            self._namespace = await self._ask_namespace()
        return self._namespace


class _Writer(NamedTuple):
    """The WAL that this process writes."""

    connection: RedisConnection
    script: bytes
    wal: int
    keys: WalKeys


def _refusal_reason(answer: Reply) -> str:
    if isinstance(answer, bytes) and (answer == GONE or answer.startswith(SEALED)):
        return str(answer, "ascii")
    return f"gap: the head is {answer!r}"
