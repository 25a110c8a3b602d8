"""What starting a run needs and returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from weft.core import commands as c
from weft.core.ids import RunId, RunUid
from weft.ports.clock import Clock, Ids
from weft.ports.store import Store
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.policy import CurrentPolicy
from weft.runtime.reader import RunReader
from weft.runtime.start_rules import DeclaredRule
from weft.runtime.values import ValueStore

if TYPE_CHECKING:  # parts of a host, which a program that only declares workflows does not load
    from weft.runtime.local import LocalRuns, LocalWork


class StartResult(msgspec.Struct, frozen=True):
    """The result of a start. ``created`` is False if the run already existed."""

    uid: RunUid
    id: RunId
    created: bool
    by_rule: bool = False
    """A rule of the workflow decides when the run begins."""


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a start is carried out."""

    chosen: bool
    """The user gave the id of the run."""
    existing: str = "attach"
    delay_ms: int = 0
    rule: DeclaredRule | None = None
    """The rule of the workflow about its starts."""


class StartingService(Protocol):
    """What starts use of the run service. A host adds ``local`` and ``work`` when it starts."""

    store: Store
    ids: Ids
    values: ValueStore
    reader: RunReader
    policy: CurrentPolicy
    local: LocalRuns | None
    work: LocalWork | None

    @property
    def clock(self) -> Clock: ...

    @property
    def known_code(self) -> HostCatalogue | None: ...

    async def tell(self, run_id: RunId, command: c.Mailed, *, key: str | None = None) -> None:
        """Give a command to a run."""
        ...
