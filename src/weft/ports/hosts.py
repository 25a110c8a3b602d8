"""The hosts of a store: the processes that work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.ids import HostId


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host as people see it: its own description, and how much it owns."""

    host: HostId
    about: Mapping[str, Any]
    lease_ms: int
    silent_ms: int
    """Time since its last heartbeat."""
    gone: bool
    """Whether its process is known to be gone, or it sent no heartbeat for longer than its lease."""
    runs: int
    tasks: int


class HeartbeatSender(Protocol):
    """Sends heartbeats from another thread, on its own connection. Belongs to the event loop that uses it first."""

    async def beat(self, host: HostId) -> None:
        """Send a heartbeat, as ``Hosts.beat`` does."""
        ...

    async def close(self) -> None: ...


class Hosts(Protocol):
    """A record of which hosts are alive. It only decides when a claim is tried; no append depends on it."""

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        """Announce a host before it owns anything. ``about`` is its description for people."""
        ...

    async def describe(self, host: HostId, about: Mapping[str, Any]) -> None:
        """Add to the description of a host that joined here, such as the address at which it answers."""
        ...

    async def beat(self, host: HostId) -> None:
        """Raise the host's counter by one. Any process may call this. Does nothing for a host that has not joined."""
        ...

    def heartbeat_sender(self) -> HeartbeatSender:
        """Return a sender for heartbeats that do not wait for the host's other work."""
        ...

    async def find_dead(self, *, monotonic: float) -> Sequence[HostId]:
        """Return the hosts that are gone, among those that have joined or own runs.

        A host is gone if it left, if its lock is free (where the store can see that), or if its counter has not changed
        for the duration of its lease, by the observer's own monotonic clock.
        """
        ...

    async def list_living(self) -> Sequence[HostId]:
        """Return the hosts that had joined and were alive at the last call of ``find_dead``."""
        ...

    async def list_all(self) -> Sequence[HostRow]:
        """Return all hosts that have joined, to show them to people."""
        ...

    async def leave(self, host: HostId) -> None:
        """Remove a host that stops. From then on, others may claim the runs that it still owns."""
        ...
