"""A read-only view of the store behind a server. ``RunService``, explanations and pictures use it like any store.

Reads that are made at the same time share one request. Commands go through the other routes of the API
(``weft.authoring.remote``), which check who may do what.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from weft.authoring.remote import Remote, error_of_problem
from weft.core import values
from weft.core.ids import HostId, RunUid
from weft.errors import NotAllowed, NotFound, UsageError, WeftError
from weft.ports.access import Access
from weft.ports.blobs import Blobs
from weft.ports.budgets import Budgets
from weft.ports.definitions import Definitions
from weft.ports.hosts import HostRow, Hosts
from weft.ports.memos import Memos
from weft.ports.policies import PolicyVersions
from weft.ports.retention import Holds, Retention
from weft.ports.starts import RuledStarts
from weft.ports.step_logs import StepLogs
from weft.ports.store import Directory, Loaded, RunLog, StoreDetails, StoredEvent, TaskQueue
from weft.ports.streams import Streams
from weft.ports.tags import Tags
from weft.ports.tasks import TaskOffer
from weft.ports.tool_pins import ToolPins
from weft.ports.wals import Wals
from weft.server.endpoints.reads import ReadAnswer, ReadAnswers, ReadFormat, StoreRead, StoreReads
from weft.server.store_reads import FORMAT, READS_MAX, ROWS_MAX, ReadMethod, read_methods

REPEATS_MAX = 5
POLL_SECONDS = 0.25
UNKNOWN_CALLER = "access.unknown"
UNKNOWN_ROUTE = "request.unknown_route"
OPERATORS = "This concerns all tenants, and your key is for one of them."


class RemoteStore:
    """The ports of the store behind a server: all of them for an operator, those about its own runs for a tenant."""

    log: RunLog
    directory: Directory
    blobs: Blobs
    definitions: Definitions
    tags: Tags
    streams: Streams
    step_logs: StepLogs
    starts: RuledStarts
    budgets: Budgets
    holds: Holds
    tasks: TaskQueue
    access: Access
    hosts: Hosts
    """Only for operators, like all ports below: a tenant cannot see the hosts."""
    retention: Retention
    memos: Memos
    tool_pins: ToolPins
    policies: PolicyVersions
    wals: Wals | None = None
    """Redis is the server's own business."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.url = remote.url
        self.offset_ms = 0
        self.tenant = ""
        self.server_version = ""
        self._kind = ""
        self._waiting: list[tuple[StoreRead, asyncio.Future[ReadAnswer]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._asked: Counter[bytes] = Counter()
        """How often each read was asked for."""

    async def open(self) -> None:
        """Ask the server who the caller is, and bind the ports. Raises UsageError if it is of another version."""
        asked_at = time.time()
        about = await fetch_read_format(self.remote)
        # The server has read its clock about halfway through the request.
        local_ms = (asked_at + time.time()) / 2 * 1000
        self.offset_ms = round(about.now.timestamp() * 1000 - local_ms)
        self.tenant, self.server_version, self._kind = about.tenant, about.version, about.kind
        self._bind()

    def _bind(self) -> None:
        part = partial(_ReadPort, self)
        self.directory = cast("Directory", part("directory"))
        self.log = cast("RunLog", _Log(self, "log"))
        self.blobs = cast("Blobs", _Blobs(self, self.log))
        self.definitions = cast("Definitions", part("definitions"))
        self.tags = cast("Tags", part("tags"))
        self.streams = cast("Streams", part("streams"))
        self.starts = cast("RuledStarts", part("starts"))
        self.budgets = cast("Budgets", part("budgets"))
        self.step_logs = cast("StepLogs", part("step_logs"))
        self.holds = cast("Holds", part("holds"))
        self.tasks = cast("TaskQueue", part("tasks") if not self.tenant else _NoTasks())
        self.policies = cast("PolicyVersions", part("policies"))
        if not self.tenant:
            self.hosts = cast("Hosts", _Hosts(self, "hosts"))
            self.retention = cast("Retention", part("retention"))
            self.memos = cast("Memos", part("memos"))
            self.tool_pins = cast("ToolPins", part("tool_pins"))

    async def details(self) -> StoreDetails:
        return StoreDetails(kind=self._kind, schema=0, size_bytes=None)

    async def close(self) -> None:
        await self.remote.close()

    async def read(self, method: ReadMethod, arguments: Mapping[str, Any], run: str = "") -> Any:
        """Read from the store, in one request with all other reads that are made now. Raises what the store raised.

        A read that is repeated often waits for a change. It is slowed down, to spare the server.
        """
        given = msgspec.to_builtins(dict(arguments))
        asked = msgspec.json.encode((method.name, given))
        self._asked[asked] += 1
        if self._asked[asked] > REPEATS_MAX:
            await asyncio.sleep(POLL_SECONDS)
        future: asyncio.Future[ReadAnswer] = asyncio.get_running_loop().create_future()
        wanted = StoreRead(read=method.name, arguments=given, run=run)
        self._waiting.append((wanted, future))
        if len(self._waiting) == 1:
            sending = asyncio.create_task(self._send())
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        answer = await future
        if answer.problem is not None:
            error = error_of_problem(answer.problem)
            raise _with_seq(error, answer.seq)
        return msgspec.convert(answer.value, method.answer)

    async def _send(self) -> None:
        """Send the waiting reads. When this task first runs, all callers that were ready have added theirs."""
        waiting, self._waiting = self._waiting, []
        while waiting:
            count = _fitting([wanted for wanted, _ in waiting])
            batch, waiting = waiting[:count], waiting[count:]
            try:
                body = StoreReads(reads=[wanted for wanted, _ in batch])
                answers = (await self.remote.post("reads", body, ReadAnswers)).answers
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)


def _fitting(reads: Sequence[StoreRead]) -> int:
    """Return how many of the first reads fit into one request: at least one."""
    rows = count = 0
    for wanted in reads[:READS_MAX]:
        query = wanted.arguments.get("query")
        limited = query if isinstance(query, dict) else wanted.arguments
        rows += int(limited.get("limit", 0))
        if count and rows > ROWS_MAX:
            break
        count += 1
    return count


async def fetch_read_format(remote: Remote) -> ReadFormat:
    """Return what the server says about itself. Raises UsageError if this client cannot read from it, NotAllowed."""
    try:
        about = await remote.get_view("reads", ReadFormat)
    except NotAllowed as error:
        if error.code != UNKNOWN_CALLER:
            raise
        hint = "Give an API key of the server: --key KEY, WEFT_KEY, or a file that WEFT_KEY_FILE names."
        raise NotAllowed(error.message, hint=hint, code=error.code) from error
    except (NotFound, UsageError) as error:
        if error.code != UNKNOWN_ROUTE:
            raise
        raise UsageError(
            f"The server at {remote.url} has no API for this command line: the URL is wrong, or it runs an older Weft.",
            hint="Check the path of the URL: it ends where the API is mounted. Else update Weft on the server.",
            code="usage.server_version",
        ) from error
    if about.format != FORMAT:
        other = "a newer" if about.format > FORMAT else "an older"
        raise UsageError(
            f"The server at {remote.url} runs {other} Weft ({about.version}), which this version cannot read from.",
            hint=f"Install its version here: pip install weft=={about.version}",
            code="usage.server_version",
        )
    return about


class _ReadPort:
    """A port whose methods are reads on the server. Any other method is refused."""

    def __init__(self, store: RemoteStore, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        found = read_methods().get(f"{self._name}.{method}")
        if found is None:
            raise NotAllowed(
                f"This cannot be done through a server ({self._name}.{method}).",
                hint="Use the weft command where the store is: --url sqlite:///weft.db or postgresql://…",
            )
        return partial(self._read, found)

    def _read(self, method: ReadMethod, *given: Any, **named: Any) -> Any:
        return self._store.read(method, {**dict(zip(method.arguments, given, strict=False)), **named})


class _Log(_ReadPort):
    """The logs of runs. It remembers which run refers to which blob, because a tenant must name the run."""

    def __init__(self, store: RemoteStore, name: str) -> None:
        super().__init__(store, name)
        self.runs_by_blob: dict[str, RunUid] = {}

    async def events(self, uid: RunUid, *, after: int, limit: int) -> Sequence[StoredEvent]:
        found: Sequence[StoredEvent] = await self._read(read_methods()["log.events"], uid, after=after, limit=limit)
        self._remember(uid, [event.body for event in found])
        return found

    async def load(self, uid: RunUid, *, fold: int) -> Loaded | None:
        found: Loaded | None = await self._read(read_methods()["log.load"], uid, fold=fold)
        if found is not None:
            snapshot = [found.snapshot.body] if found.snapshot is not None else []
            self._remember(uid, [*snapshot, *(event.body for event in found.events), *(m.body for m in found.inbox)])
        return found

    def _remember(self, uid: RunUid, bodies: Sequence[bytes]) -> None:
        self.runs_by_blob |= {digest: uid for body in bodies for digest in values.blobs_in(body)}


class _Blobs:
    """Large values, each read for the run that refers to it."""

    def __init__(self, store: RemoteStore, log: RunLog) -> None:
        self._store = store
        self._log = cast("_Log", log)

    async def get(self, digest: str) -> bytes:
        runs = self._log.runs_by_blob
        uid = runs.get(digest, RunUid(""))
        data: bytes = await self._store.read(read_methods()["blobs.get"], {"digest": digest}, run=uid)
        runs |= dict.fromkeys(values.blobs_in(data), uid)
        return data

    async def put(self, data: bytes) -> str:
        raise NotAllowed("This cannot be done through a server (blobs.put).")


class _Hosts(_ReadPort):
    """The hosts. The server decides which of them are gone."""

    async def find_dead(self, *, monotonic: float) -> Sequence[HostId]:
        found: Sequence[HostRow] = await self._read(read_methods()["hosts.list_all"])
        return [row.host for row in found if row.gone]


class _NoTasks:
    """The shared tasks as a tenant sees them: none."""

    async def rows(self, uid: RunUid) -> Sequence[TaskOffer]:
        return ()

    def __getattr__(self, method: str) -> Any:
        raise NotAllowed(OPERATORS, hint="Use a key without a tenant.")


def _with_seq(error: WeftError, seq: int | None) -> WeftError:
    """Add the number of the damaged event to an error about a log, if there is one."""
    if seq is not None:
        error.context["seq"] = seq
    return error
