"""Checks of ``weft doctor`` of the store, or of the server that has it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from weft.cli.checkup import DoctorLine, fail, ok, warn
from weft.cli.migrate import missing_tables, pending_migrations
from weft.cli.operations import installation_operations
from weft.cli.output import age_text
from weft.cli.store_access import open_service, sqlite_file, store_exists, store_label
from weft.core.plurals import pluralize
from weft.errors import NotAllowed, WeftError
from weft.ports.run_query import RunQuery
from weft.ports.store import OPEN_STATUSES
from weft.runtime.service import RunService
from weft.stores import open_store

SKEW_MS = 1_000
SKEW_MS_MAX = 60_000
ROOM_BYTES = 1024**3
ROOM_BYTES_MIN = 100 * 1024**2
NETWORK_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "lustre"}
)
"""File systems whose locks SQLite cannot rely on."""


async def check_store(address: str) -> list[DoctorLine]:
    """Check a store: its place, whether it opens, its schema, its clock, and its hosts."""
    found: list[DoctorLine] = []
    open_store(address)  # opens nothing yet, and refuses what is no store
    if address.startswith("memory:"):
        return [warn("store", f"{address} keeps runs only in the process that has it", "Use sqlite:///weft.db.")]
    if address.startswith("sqlite:"):
        path = sqlite_file(address)
        found += _place(path)
        if not path.parent.is_dir():
            return found
        if path.exists() and not path.is_file():  # to open a pipe would take for ever
            return [*found, fail("store", f"{path} is not a file", "Name another one: --url sqlite:///weft.db")]
    if not store_exists(address):
        return [*found, ok("store", f"{store_label(address)} does not exist yet; the first run makes it")]
    try:
        pending = [name for name, _ in await pending_migrations(address)]
        if pending:
            text = f"{store_label(address)} has the schema of an older Weft; {', '.join(pending)} would be applied"
            return [*found, warn("store", text, "Back it up, then: weft migrate. The first host would do it, too.")]
        missing = await missing_tables(address)
        if missing:
            text = f"{store_label(address)} lacks {', '.join(missing)}, which belong to its schema"
            return [*found, fail("store", text, "Somebody removed them. Restore the store from its last backup.")]
        async with open_service(address) as service:
            return [*found, *await _opened(service, address)]
    except WeftError as error:
        return [*found, fail("store", f"{store_label(address)}: {error.message}", error.hint)]


async def _opened(service: RunService, address: str) -> list[DoctorLine]:
    details, counts = await service.store.details(), await service.store.directory.counts()
    total = sum(counts.values())
    open_runs = sum(counts.get(status, 0) for status in OPEN_STATUSES)
    schema = f"schema {details.schema}"
    size = f", {details.size_bytes:,} bytes" if details.size_bytes is not None else ""
    return [
        ok("store", f"{store_label(address)}: {schema}, {pluralize(total, 'run')}, {open_runs:,} open{size}"),
        *await _clock(service),
        *await _hosts(service, open_runs),
        *await _keys(service),
    ]


async def _clock(service: RunService) -> list[DoctorLine]:
    """Compare the clock of this machine with that of the store, or with its newest run."""
    skew = service.store.offset_ms
    if not skew:
        newest = (await service.search(RunQuery(limit=1, internal=True))).rows
        skew = max(0, newest[0].updated_at - service.clock.now_ms()) if newest else 0
    ahead = "behind" if skew > 0 else "ahead of"
    text = f"the clock of this machine is {age_text(abs(skew))} {ahead} that of the store"
    if abs(skew) >= SKEW_MS_MAX:
        return [fail("clock", text, "Synchronize it (NTP): times of runs and timers would be wrong.")]
    if abs(skew) >= SKEW_MS:
        return [warn("clock", text, "Synchronize it (NTP).")]
    return [ok("clock", "this machine and the store agree")]


async def _hosts(service: RunService, open_runs: int) -> list[DoctorLine]:
    hosts = await service.store.hosts.list_all()
    living = [host for host in hosts if not host.gone]
    left = sum(host.runs for host in hosts if host.gone)
    if left and not living:
        text = f"{pluralize(left, 'run')} of hosts that are gone, and no host is alive"
        return [warn("hosts", text, "Start one: weft serve app.py")]
    if open_runs and not living:
        return [warn("hosts", f"{open_runs:,} open, and no host is alive", "Start one: weft serve app.py")]
    silent = max((host.silent_ms for host in living), default=0)
    seen = f", last heard of {age_text(silent)} ago" if living else ""
    return [ok("hosts", f"{len(living)} alive{seen}")]


async def _keys(service: RunService) -> list[DoctorLine]:
    now = service.clock.now_ms()
    keys = [key for key in await installation_operations(service).keys() if key.revoked_at is None]
    valid = [key for key in keys if key.expires_at is None or key.expires_at > now]
    if keys and not valid:
        return [warn("keys", "all API keys have expired", "weft keys create NAME --scope read")]
    if not keys:
        return [ok("keys", "no API keys: only this machine can use the API")]
    return [ok("keys", f"{pluralize(len(valid), 'API key')} valid")]


def _place(path: Path) -> list[DoctorLine]:
    """Check the directory and the file of a SQLite store, and the disk that they are on."""
    folder = path.parent
    if not folder.is_dir():
        return [fail("files", f"there is no directory {folder}", "Create it, or name another file: --url")]
    found = [*_permissions(path), *_file_system(folder)]
    free = shutil.disk_usage(folder).free
    text = f"{free / 1024**3:,.1f} GiB free in {folder}"
    if free < ROOM_BYTES_MIN:
        return [*found, fail("disk", text, "Free some space: without it, no run goes on.")]
    if free < ROOM_BYTES:
        return [*found, warn("disk", text, "Free some space, or delete old runs: weft gc --older 90d --dry-run")]
    return [*found, ok("disk", text)]


def _permissions(path: Path) -> list[DoctorLine]:
    beside = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
    locked = [one for one in (path.parent, *beside) if one.exists() and not os.access(one, os.R_OK | os.W_OK)]
    if locked:
        todo = "Make it writable for this user. SQLite also writes files beside the database."
        return [fail("files", f"{locked[0]} is not readable and writable", todo)]
    return [ok("files", f"{path} can be read and written")]


def _file_system(folder: Path) -> list[DoctorLine]:
    """Check that a directory is not on a network file system, where that can be seen."""
    kind = file_system_of(folder)
    if kind in NETWORK_SYSTEMS:
        todo = "Move the store to a local disk, or use Postgres. On a network disk SQLite can lose or damage runs."
        return [fail("disk", f"{folder} is on a network file system ({kind})", todo)]
    return []


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Return the kind of file system that a directory is on; empty if the system does not say."""
    if not sys.platform.startswith("linux"):
        return ""
    best, kind = "", ""
    target = f"{folder.resolve()}/"
    for line in mounts.read_text("utf-8", "replace").splitlines():
        _, place, system, *_ = line.split(" ")
        place = place.replace("\\040", " ")
        if target.startswith(f"{place.rstrip('/')}/") and len(place) >= len(best):
            best, kind = place, system
    return kind


async def check_redis_server(address: str) -> list[DoctorLine]:
    """Check a server: whether it answers, its version, the key, its clock, and its hosts."""
    from importlib.metadata import version

    async with open_service(address) as service:
        store = service.store
        there, here = getattr(store, "server_version", ""), version("weft")
        who = f", as a key of the tenant {service.tenant}" if service.tenant else ""
        found = [ok("server", f"{store_label(address)} answers{who}")]
        if there != here:
            found.append(warn("version", f"the server runs Weft {there}, this is {here}", f"pip install weft=={there}"))
        else:
            found.append(ok("version", f"Weft {there} on both sides"))
        found += await _clock(service)
        if not service.tenant:
            counts = await store.directory.counts()
            found += await _hosts(service, sum(counts.get(status, 0) for status in OPEN_STATUSES))
        try:
            found += await _keys(service) if not service.tenant else []
        except NotAllowed:
            found.append(ok("keys", "the key is valid; it may not list the others"))
        return found
