"""The live feed of a process: the commits of its host, kept for a while in channels that clients read.

Clients with the same filter share a channel and its frames. A channel keeps the newest frames, up to a number and a
size. A client is only a position in the channel: a slow client costs nothing, but it misses the frames that the channel
has dropped. A client that follows one run reads its log at its own pace; the feed only wakes it. While nobody listens,
the feed observes no commits.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from weft.core.ids import RunUid
from weft.errors import StoreError
from weft.observe.event_parts import Unfolding
from weft.server.limits import busy_refusal
from weft.server.live.frames import LiveEvent, LiveFrame, encode
from weft.server.views import required_time

if TYPE_CHECKING:
    from weft.runtime.run.actor import Actor
    from weft.runtime.run.draft import Draft
    from weft.runtime.service import RunService

FRAMES_MAX = 10_000
BYTES_MAX = 8 * 1024 * 1024
CHANNELS_MAX = 200
CHANNELS_EACH_MAX = 20
"""The number of channels of one tenant or address."""
LINGER_SECONDS = 60.0
"""How long a channel without clients is kept for clients that reconnect."""
SECONDS_PER_CLIENT = 0.0005
PAUSE_SECONDS_MIN = 0.01
PAUSE_SECONDS_MAX = 0.5
"""With many clients, each client is served less often, with more events at once."""
POLL_SECONDS = 1.0


class Filter(msgspec.Struct, frozen=True):
    """A filter for the events of a channel."""

    workflow: str | None = None
    status: str | None = None
    kinds: frozenset[str] = frozenset()
    prefix: str = ""
    """The prefix of the run ids of a tenant. Its callers see ids without the prefix."""

    def accepts(self, run: str, workflow: str, status: str, kind: str) -> bool:
        return (
            run.startswith(self.prefix)
            and (self.workflow is None or self.workflow == workflow)
            and (self.status is None or self.status == status)
            and (not self.kinds or kind in self.kinds)
        )


class LiveBatch(msgspec.Struct, frozen=True):
    """The next frames for a client, its position after them, and how many frames it lost."""

    frames: list[LiveFrame]
    position: int
    lost: int


class Channel:
    """The frames of one filter."""

    def __init__(self, name: str, filter: Filter, caller: str) -> None:
        self.name = name
        self.filter = filter
        self.caller = caller
        """The caller that opened the channel."""
        self.clients = 0
        self.idle_since: float | None = None
        self._frames: deque[LiveFrame] = deque()
        self._bytes = 0
        self.last = 0
        """The number of frames that were ever added."""
        self._changed = asyncio.Event()
        self._waking: asyncio.Handle | None = None

    def add(self, frame: LiveFrame) -> None:
        """Add a frame and wake the clients. Drops the oldest frames if there are too many."""
        self._frames.append(frame)
        self._bytes += len(frame.data)
        self.last += 1
        while len(self._frames) > FRAMES_MAX or self._bytes > BYTES_MAX:
            self._bytes -= len(self._frames.popleft().data)
        if self._waking is None:
            self._waking = asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = None
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def after(self, position: int, bytes_max: int) -> LiveBatch:
        """Return the next frames after a position, up to about ``bytes_max``."""
        first = self.last - len(self._frames)
        lost = max(0, first - position)
        position = max(position, first)
        frames: list[LiveFrame] = []
        size = 0
        for index in range(position - first, len(self._frames)):
            frames.append(self._frames[index])
            size += len(frames[-1].data)
            if size >= bytes_max:
                break
        return LiveBatch(frames, position + len(frames), lost)

    async def wait(self, seconds: float) -> None:
        """Wait until there may be more frames, or the time runs out."""
        changed = self._changed
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()
        pause = min(PAUSE_SECONDS_MAX, self.clients * SECONDS_PER_CLIENT)
        if pause > PAUSE_SECONDS_MIN:
            # Spread over time, because serving a thousand clients at once would delay everything else.
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - not for security

    def close(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
        self._wake()

    def cursor(self, position: int) -> str:
        """Return a position as clients see it."""
        return f"{self.name}-{position}"

    def position(self, cursor: str) -> int | None:
        """Parse a cursor; None if it does not belong to this channel or lies ahead of it."""
        name, _, number = cursor.rpartition("-")
        if name != self.name or not number.isascii() or not number.isdigit() or len(number) > 15:
            return None
        return int(number) if int(number) <= self.last else None


class Feed:
    """The channels of this process, and the clients that follow single runs."""

    def __init__(self) -> None:
        self._runs: RunService | None = None
        self._stop_observing: Callable[[], None] | None = None
        self._name = ""
        self._channel_count = 0
        self._channels: dict[Filter, Channel] = {}
        self._followers: dict[RunUid, dict[asyncio.Event, int]] = {}
        self._polling: asyncio.Task[None] | None = None

    def attach(self, runs: RunService) -> None:
        """Serve the commits of this host from now on. Cursors from an earlier host are no longer valid."""
        self._stop_observing = None
        if runs.streams is not None:
            runs.streams.watch(self.wake_followers)
        if runs.work is not None and runs.work.step_logs is not None:
            runs.work.step_logs.watch(self.wake_followers)
        self._runs = runs
        self._name = runs.ids.new()[-12:]
        self._channels.clear()

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        for events in self._followers.values():
            for event in events:
                event.set()
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None

    # --- a filter -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def subscribe(self, filter: Filter, caller: str = "") -> Iterator[Channel]:
        """Subscribe to the channel of a filter. Raises RequestRefused if there are too many channels."""
        channel = self._channels.get(filter)
        if channel is None:
            self._make_room(caller)
            self._channel_count += 1
            channel = self._channels[filter] = Channel(f"{self._name}.{self._channel_count}", filter, caller)
        self._observe()
        channel.clients += 1
        channel.idle_since = None
        try:
            yield channel
        finally:
            channel.clients -= 1
            if not channel.clients:
                channel.idle_since = asyncio.get_running_loop().time()

    def _make_room(self, caller: str) -> None:
        """Make room for one more channel, closing one without clients if needed. Raises RequestRefused."""
        self._forget_idle()
        for most, own in ((CHANNELS_EACH_MAX, True), (CHANNELS_MAX, False)):
            channels = [one for one in self._channels.values() if not own or one.caller == caller]
            too_many = max(0, len(channels) - most + 1)
            idle = sorted((one.idle_since, one.name, one) for one in channels if one.idle_since is not None)
            if len(idle) < too_many:
                raise busy_refusal(f"The limit of {most} different filters is reached.")
            for _, _, channel in idle[:too_many]:
                self._forget(channel)

    def _forget_idle(self) -> None:
        limit = asyncio.get_running_loop().time() - LINGER_SECONDS
        for channel in list(self._channels.values()):
            if channel.idle_since is not None and channel.idle_since < limit:
                self._forget(channel)

    def _forget(self, channel: Channel) -> None:
        channel.close()
        del self._channels[channel.filter]

    def _observe(self) -> None:
        if self._stop_observing is None and self._runs is not None:
            self._stop_observing = self._runs.commits.observe(self._on_commit)

    def _stop_if_unused(self) -> None:
        if self._stop_observing is not None and not self._channels and not self._followers:
            self._stop_observing()
            self._stop_observing = None

    def _on_commit(self, actor: Actor, draft: Draft) -> None:
        for event in self._followers.get(actor.uid, ()):
            event.set()
        self._forget_idle()
        if not self._channels:
            if not self._followers:
                asyncio.get_running_loop().call_soon(self._stop_if_unused)
            return
        state = actor.machine.state
        unfolding = Unfolding()
        subject = (actor.id, state.workflow, state.status)
        for part in [part for stored in draft.events for part in unfolding.add(stored)]:
            kind, data = part.split()
            wanted = [one for one in self._channels.values() if one.filter.accepts(*subject, kind)]
            if not wanted:
                continue
            run, workflow, status = subject
            view = LiveEvent(
                part.seq, required_time(part.at), kind, data, part.part, run=run, workflow=workflow, status=status
            )
            encoded = {"": encode(view)}
            for channel in wanted:
                prefix = channel.filter.prefix
                if prefix not in encoded:
                    encoded[prefix] = encode(msgspec.structs.replace(view, run=actor.id.removeprefix(prefix)))
                channel.add(LiveFrame(channel.cursor(channel.last + 1), kind, encoded[prefix]))

    def announce(self, event: str, data: Mapping[str, str]) -> None:
        """Send a frame to all clients that listen to a filter, whatever the filter."""
        encoded = msgspec.json.encode(data)
        for channel in self._channels.values():
            channel.add(LiveFrame(channel.cursor(channel.last + 1), event, encoded))

    # --- one run --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def follow(self, uid: RunUid) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever a run or its output changes."""
        event = asyncio.Event()
        self._followers.setdefault(uid, {})[event] = -1
        self._observe()
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        try:
            yield event
        finally:
            events = self._followers[uid]
            del events[event]
            if not events:
                del self._followers[uid]

    def wake_followers(self, uid: RunUid, _stream: str) -> None:
        """Wake the clients that follow a run, because it may have new events or output."""
        for event in self._followers.get(uid, ()):
            event.set()

    async def _poll(self) -> None:
        """Poll the followed runs, since another process may own a run or write its output."""
        seen: dict[RunUid, tuple[int, int]] = {}
        while self._followers and self._runs is not None:
            await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(StoreError):
                for uid in list(self._followers):
                    now = await self._position_of(uid)
                    if seen.get(uid) != now:
                        seen[uid] = now
                        self.wake_followers(uid, "")
            seen = {uid: position for uid, position in seen.items() if uid in self._followers}

    async def _position_of(self, uid: RunUid) -> tuple[int, int]:
        assert self._runs is not None
        row = await self._runs.store.directory.row(uid)
        lengths = await self._runs.store.streams.lengths(uid)
        printed = await self._runs.store.step_logs.totals(uid)
        return (row.seq if row is not None else -1, sum(lengths.values()) + printed.last)
