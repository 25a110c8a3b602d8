"""A search for runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core.ids import INTERNAL_WORKFLOWS, Millis, RunUid


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A search for runs, newest first. ``after`` is the cursor of the previous page."""

    workflow: str | None = None
    status: str | None = None
    statuses: Sequence[str] = ()
    """Any of these statuses. Not together with ``status``."""
    style: str | None = None
    version: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    """The run began before this time."""
    changed_before: Millis | None = None
    """The last event of the run is older than this."""
    where: Mapping[str, Any] = {}
    id_prefix: str | None = None
    parent: RunUid | None = None
    faulty: bool = False
    """Only runs whose log cannot be read."""
    internal: bool = False
    """Include Weft's own runs (``INTERNAL_WORKFLOWS``). They are also found by their workflow or parent."""
    limit: int = 100
    after: str | None = None
    scan: int | None = None
    """How many runs may be examined for one page; None for any number.

    A page may then have fewer runs than ``limit``, or none, and still have a cursor.
    """

    @property
    def any_status(self) -> Sequence[str]:
        """Return the statuses that the search is for; empty for all."""
        return self.statuses if self.status is None else (self.status,)

    @property
    def leaves_out(self) -> Sequence[str]:
        """Return the workflows whose runs this search leaves out."""
        named = self.internal or self.workflow is not None or self.parent is not None
        return () if named else INTERNAL_WORKFLOWS

    @property
    def hides_imported(self) -> bool:
        """Return whether this search leaves out imported runs. They are found by their status or parent."""
        return not self.internal and not self.any_status and self.parent is None

    @property
    def is_filtered(self) -> bool:
        """Return whether the search has conditions that no index on status, workflow or age answers."""
        return bool(
            self.style is not None
            or self.version is not None
            or self.changed_before is not None
            or self.where
            or self.id_prefix is not None
            or (self.parent is not None and self.any_status)
        )


class RunCount(msgspec.Struct, frozen=True):
    """How many runs a search finds. With ``more``, there are at least as many."""

    count: int
    more: bool
