"""What the preparation of a patch uses and returns, in every style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.tags import WorkflowTags

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext


class PreparedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that is ready to be judged: the version to which it leads, and what must be stored before it applies."""

    base: str
    version: str
    reason: str = ""
    prepared: Raw = ABSENT
    """What the style of the run needs besides the patch itself."""
    definition: Definition | None = None


class PatchParts(Protocol):
    """What the preparation of a patch uses."""

    @property
    def clock(self) -> Clock: ...

    @property
    def definitions(self) -> Definitions: ...

    @property
    def catalogue(self) -> HostCatalogue | None: ...

    @property
    def tags(self) -> WorkflowTags: ...

    def document_context(self) -> DocumentContext: ...
