"""What a store knows of the processes that work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.core.ids import HostId


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host as people see it: what it says of itself, and what it has."""

    host: HostId
    about: Mapping[str, Any]
    lease_ms: int
    silent_ms: int
    """How long ago it last said that it lives."""
    gone: bool
    """Its process is known to be gone, or it was silent for longer than its lease."""
    runs: int
    tasks: int


class Heart(Protocol):
    """The beat of a host for a thread of its own: with a connection of its own, for the loop that uses it first."""

    async def beat(self, host: HostId) -> None:
        """As :meth:`Hosts.beat`."""
        ...

    async def close(self) -> None: ...


class Hosts(Protocol):
    """Who is alive. Only tells when to try a claim; an append never looks here."""

    async def join(self, host: HostId, *, lease_ms: int, about: Mapping[str, Any] | None = None) -> None:
        """Announce a host, before it owns anything. ``about``: what people see of it."""
        ...

    async def beat(self, host: HostId) -> None:
        """Raise the host's counter by one."""
        ...

    def heart(self) -> Heart:
        """For beats that must not wait for whatever else the host does."""
        ...

    async def dead(self, *, monotonic: float) -> Sequence[HostId]:
        """Hosts that own runs or are listed and are gone.

        Left, without their lock (where the store can see that), or whose counter stood still for their lease on the
        observer's own monotonic clock.
        """
        ...

    async def living(self) -> Sequence[HostId]:
        """Who was listed and not dead at the last look of :meth:`dead`."""
        ...

    async def listed(self) -> Sequence[HostRow]:
        """All hosts, for people."""
        ...

    async def leave(self, host: HostId) -> None:
        """The host stops on purpose; what it still owns is claimable at once."""
        ...

    async def changed(self) -> bool:
        """Whether another process wrote since the last call.

        May say yes too often, never no wrongly (after a commit is visible).
        """
        ...
