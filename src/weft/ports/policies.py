"""The policy of an installation: its versions, and how much of its limits was used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Millis


class StoredPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the policy, as its author wrote it."""

    version: int
    """Counts from 1."""
    text: str
    by: str = ""
    at: Millis
    reason: str = ""


class WindowCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a limit counts for one tenant in one window of time."""

    tenant: str
    name: str
    """What is counted. Limits with the same name share a count."""
    begins_at: Millis
    ends_at: Millis
    limit: int


class PolicyVersions(Protocol):
    """The versions of the policy, and the counts of its limits."""

    async def newest(self) -> int:
        """Return the number of the newest version; 0 if there is none. Hosts ask this every second."""
        ...

    async def get(self, version: int) -> StoredPolicy | None:
        """Return one version."""
        ...

    async def history(self, *, upto: int | None = None, limit: int = 100) -> Sequence[StoredPolicy]:
        """Return versions, newest first, beginning with number ``upto``."""
        ...

    async def put(self, policy: StoredPolicy) -> bool:
        """Add a version. Returns False, and adds nothing, unless its number follows the newest."""
        ...

    async def take(self, counts: Sequence[WindowCount], *, now: Millis) -> WindowCount | None:
        """Add one to each count, or to none. Returns the first whose limit is reached, or None if all were added.

        Counts whose windows ended before ``now`` may be forgotten.
        """
        ...

    async def give_back(self, counts: Sequence[WindowCount]) -> None:
        """Subtract one from each count, because what was counted did not happen."""
        ...
