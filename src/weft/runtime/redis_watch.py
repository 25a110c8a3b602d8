"""Watch the Redis server of a host: say what it is, whether it is used, and what may be lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from weft.errors import StoreError, UsageError
from weft.ports.wal_server import IdentifiedServer, ServerFacts
from weft.stores.hot.facts import refuse_unfit_server
from weft.stores.hot.policy import hot_policy
from weft.stores.hot.promise import server_text, server_warning, what_may_be_lost
from weft.stores.redis.task_end import end_tasks

log = logging.getLogger("weft")

LOOK_SECONDS: Final = 10.0
FIRST_SECONDS: Final = 5.0
"""How long a start waits for the server. A host works without it."""
NO_LOSS: Final = "Nothing is lost, whatever happens to Redis: it only {}, which the store keeps too."
CARRIES: Final = "counts requests and carries tasks of streams"


class RedisReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says about its Redis server."""

    role: Literal["hints", "hot"]
    policy: str = ""
    """When hops are drained; empty in the role of an aid."""
    url: str
    server: str
    """Name, version, AOF and replicas."""
    used: bool
    """Whether the host uses it now."""
    problem: str = ""
    """Why it does not."""
    may_be_lost: str
    """One sentence."""
    bad_answers: int = 0
    """How many answers of workers on streams could not be used since the host began."""
    streams_problem: str = ""
    """Why the host cannot use the streams; empty if it can."""

    def line(self) -> str:
        """Return the report as one line of a log."""
        role = f"hot, policy {self.policy}" if self.role == "hot" else "hints"
        state = "" if self.used else f"; not used now: {self.problem.rstrip('.')}"
        return f"Redis at {self.url} ({role}): {self.server}{state}. {self.may_be_lost}"


class RedisWatch:
    """Asks a server about itself now and then. ``report`` is what it last said."""

    def __init__(
        self, server: IdentifiedServer, policy: str, problem: Callable[[], str] = lambda: "", *, wakes: bool = True
    ) -> None:
        """``policy`` is that of the hot path, or empty. ``problem`` says why the hot path is off; empty if it is on.

        ``wakes``: hosts hear over the server what others have written.
        """
        self._server = server
        self._policy = policy
        self._problem = problem
        self._no_loss = NO_LOSS.format(f"wakes hosts, {CARRIES}" if wakes else CARRIES)
        self._facts: ServerFacts | None = None
        self._silence = ""
        self._task: asyncio.Task[None] | None = None
        self._changed: Callable[[RedisReport], Awaitable[None]] | None = None
        self.streams: Callable[[], tuple[int, str]] = lambda: (0, "")
        """Returns how many answers on streams were bad, and why the host cannot use the streams."""

    @property
    def report(self) -> RedisReport:
        """What the host says about its server now."""
        problem = self._silence or self._problem()
        bad_answers, streams_problem = self.streams()
        return RedisReport(
            role="hot" if self._policy else "hints",
            policy=self._policy,
            url=self._server.url,
            server=server_text(self._facts) if self._facts is not None else "has not answered yet",
            used=not problem,
            problem=problem,
            may_be_lost=what_may_be_lost(self._facts, hot_policy(self._policy)) if self._policy else self._no_loss,
            bad_answers=bad_answers,
            streams_problem=streams_problem,
        )

    async def check(self) -> None:
        """Ask the server before a host starts. Raises UsageError if it cannot be used; it may be away."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ask_server(), FIRST_SECONDS)
        if self._facts is None:
            self._silence = self._silence or "The server does not answer."
        elif self._policy:
            refuse_unfit_server(self._facts, self._server.url)
            if text := server_warning(self._facts):
                log.warning("weft: %s", text)

    def start(self, changed: Callable[[RedisReport], Awaitable[None]]) -> None:
        """Log the report, and pass it to ``changed`` now and whenever it is another one."""
        report = self.report
        log.log(logging.INFO if report.used else logging.WARNING, "weft: %s", report.line())
        self._changed = changed
        self._task = asyncio.get_running_loop().create_task(self._watch_forever(changed))

    async def close(self) -> None:
        """Stop watching. The server is closed by whoever opened it."""
        task, self._task = self._task, None
        if task is not None:
            await end_tasks(task)

    async def _watch_forever(self, changed: Callable[[RedisReport], Awaitable[None]]) -> None:
        told: RedisReport | None = None
        while True:
            report = self.report
            if report != told:
                with contextlib.suppress(StoreError):
                    await changed(report)
                    told = report
            await asyncio.sleep(LOOK_SECONDS)
            await self._ask_server()

    async def _ask_server(self) -> None:
        try:
            self._facts = await self._server.facts()
            self._silence = ""
        except StoreError as error:
            self._silence = error.message
        except UsageError as error:  # a certificate that cannot be read
            self._silence = error.message
