"""Subscriptions to the commits of this host.

Subscribers are told when a commit is in the durable store. On a hot path that is later than its acknowledgement:
nothing that was shown may ever be taken back, and the numbers that clients resume from must stay true.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weft.core.ids import RunUid, Seq
from weft.ports.hot import HotRuns
from weft.runtime.run.actor import Actor
from weft.runtime.run.draft import Draft

Watcher = Callable[[RunUid, int, str], None]
Observer = Callable[[Actor, Draft], None]


class CommitFeed:
    """Calls subscribers after each commit on this host."""

    def __init__(self, hot: HotRuns | None = None) -> None:
        self._hot = hot
        if hot is not None:
            hot.on_drained = self._on_drained
        self._undrained: dict[RunUid, deque[tuple[Actor, Draft]]] = {}
        """Commits that subscribers are told of when they are drained."""
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
        """Notify all subscribers of a commit, once it is in the durable store."""
        if not (self._observers or self._waiting or self._watchers):
            return
        if self._hot is not None and self._hot.has_tail(actor.uid):
            self._undrained.setdefault(actor.uid, deque()).append((actor, draft))
        else:
            self._notify(actor, draft)

    def _on_drained(self, uid: RunUid, seq: Seq | None) -> None:
        """Tell subscribers of a run up to this number; with None, of nothing: its tail is lost."""
        if seq is None:
            self._undrained.pop(uid, None)
            return
        waiting = self._undrained.get(uid)
        while waiting and _last_seq(waiting[0][1]) <= seq:
            self._notify(*waiting.popleft())
        if waiting is not None and not waiting:
            del self._undrained[uid]

    def _notify(self, actor: Actor, draft: Draft) -> None:
        for observer in self._observers:
            observer(actor, draft)
        if self._waiting:
            for changed in self._waiting.get(actor.uid, ()):
                changed.set()
        for watcher in self._watchers:
            watcher(actor.uid, _last_seq(draft), actor.machine.state.status)


def _last_seq(draft: Draft) -> Seq:
    """Return the number of the last event in a draft."""
    return Seq(draft.seq + len(draft.events))
