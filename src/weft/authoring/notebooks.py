"""Apps in IPython: cells are run again, and no cell can stay inside ``async with app``."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from weft.authoring.blocking.thread import at_exit

log = logging.getLogger("weft")


def in_notebook() -> bool:
    """Return whether this program is run by IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


class Redefinitions:
    """Lets the functions of a notebook be defined again. The newest definition counts, which is said once per name."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def allows(self, name: str, old: Callable[..., Any], new: Callable[..., Any]) -> bool:
        """Return whether the new function replaces the old one: in IPython, if they are from the same module."""
        if not in_notebook() or getattr(old, "__module__", None) != getattr(new, "__module__", ""):
            return False
        self.say(name)
        return True

    def say(self, name: str) -> None:
        """Say once that the newest definition of a name counts."""
        if name not in self._said:
            self._said.add(name)
            log.warning("weft: %s is defined again; its newest definition counts from now on", name)


class HostableApp(Protocol):
    """What a notebook uses of an app."""

    @property
    def url(self) -> str: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


class NotebookHost:
    """Hosts an app on the event loop of the notebook, from the first start of a run until the kernel ends."""

    def __init__(self, app: HostableApp) -> None:
        self._app = app
        self._opening: asyncio.Task[Any] | None = None

    async def open(self) -> None:
        """Host the app, unless that is under way. Several cells may ask for it at once."""
        if self._opening is None or self._opening.done():
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._enter(loop))
        await asyncio.shield(self._opening)

    async def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        await self._replace_older()
        await self._app.__aenter__()
        process = os.getpid()

        def leave() -> None:
            if process == os.getpid() and not (loop.is_closed() or loop.is_running()):
                loop.run_until_complete(self.close())

        at_exit(leave)

    async def _replace_older(self) -> None:
        """Close the app that an earlier run of the same cell made: its old steps would go on performing tasks."""
        hosts = sys.modules["IPython"].get_ipython().meta.setdefault("weft_hosts", {})
        older: NotebookHost | None = hosts.get(self._app.url)
        hosts[self._app.url] = self
        if older is not None and older is not self:
            log.warning("weft: a newer app of this notebook hosts %s from now on", self._app.url)
            await older.close()

    async def close(self) -> None:
        """Stop hosting, unless that was done, or its event loop is gone and everything with it."""
        opening, self._opening = self._opening, None
        if opening is not None and opening.get_loop() is asyncio.get_running_loop():
            await self._app.__aexit__(None, None, None)
