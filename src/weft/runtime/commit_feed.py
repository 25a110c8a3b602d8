"""Subscriptions to the commits of this host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weft.core.ids import RunUid
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft

Watcher = Callable[[RunUid, int, str], None]
Observer = Callable[[Actor, Draft], None]


class CommitFeed:
    """Calls subscribers after each commit on this host."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._observers: list[Observer] = []
        self._waiting: dict[RunUid, list[asyncio.Event]] = {}

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Subscribe to commits with (uid, last number, status). Returns a function that unsubscribes."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Subscribe to commits with the run and its draft. Returns a function that unsubscribes."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    @contextmanager
    def changes_of(self, uid: RunUid) -> Iterator[asyncio.Event]:
        """Yield an event that is set at every commit of this run."""
        changed = asyncio.Event()
        self._waiting.setdefault(uid, []).append(changed)
        try:
            yield changed
        finally:
            waiting = self._waiting[uid]
            waiting.remove(changed)
            if not waiting:
                del self._waiting[uid]

    def publish(self, actor: Actor, draft: Draft) -> None:
        """Notify all subscribers of a commit."""
        for observer in self._observers:
            observer(actor, draft)
        if self._waiting:
            for changed in self._waiting.get(actor.uid, ()):
                changed.set()
        for watcher in self._watchers:
            watcher(actor.uid, actor.committed_seq, actor.machine.state.status)
