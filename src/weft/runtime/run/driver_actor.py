"""The interface of the actor that the driver of a run's code uses."""

from __future__ import annotations

from typing import Protocol

from msgspec import Raw

from weft.core import commands as c
from weft.core.code.state import Entry
from weft.core.ids import EntryId, Seq


class DriverActor(Protocol):
    """The methods of the actor that its driver uses."""

    tolerant: bool
    committed_seq: Seq

    def issue(self, command: c.Asked) -> None:
        """Decide a request and record its events at once."""
        ...

    def try_schedule(self, ask: c.ScheduleTask) -> Entry | None:
        """Record a plain step at once. Returns None if it must be issued."""
        ...

    def keep(self, raw: bytes, *, apart: bool = False) -> Raw:
        """Return a value for the log: the value itself, or a reference to a blob that is put before the commit.

        With ``apart``, also a small value is a blob, so that other blobs and steps can refer to it.
        """
        ...

    def blob(self, digest: str) -> bytes | None:
        """Return a blob if it is in memory."""
        ...

    def now(self) -> int: ...

    def is_new(self) -> bool:
        """Return whether nothing of the run is durable yet."""
        ...

    def new_id(self) -> str: ...

    def emit(self, stream: str, raw: bytes, place: str, *, at_root: bool = False) -> None:
        """Write to an output stream, from this place. ``at_root``: to one of the run at the root of the tree."""
        ...

    def drop_from(self, entry: EntryId) -> None:
        """Drop an entry of a fork and all that began after it, and let the code begin again."""
        ...

    def hold_other_input(self, location: str, entry: EntryId, asked: bytes, where: str) -> None:
        """Hold the run for a person: the arguments differ from those in the log, which must be read first.

        ``where``: a note about the location.
        """
        ...
