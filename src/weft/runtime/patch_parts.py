"""What the preparation of a patch uses and returns, in every style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT
from weft.core.graph.model import GraphModel
from weft.ports.clock import Clock
from weft.ports.definitions import Definition, Definitions
from weft.ports.hosts import Hosts
from weft.ports.store import RunRow
from weft.runtime.catalogue import HostCatalogue
from weft.runtime.compiled_documents import CompiledDocuments
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.run.driver import Program
from weft.runtime.run.replay import Replayed
from weft.runtime.tags import WorkflowTags

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext

FORM_CHARACTERS_MAX = 200


def wrong_form(error: msgspec.ValidationError) -> str:
    """Return what is wrong with the form of a patch. What was written there may be long, and is shown in part."""
    text = str(error)
    shown = text if len(text) <= FORM_CHARACTERS_MAX else f"{text[:FORM_CHARACTERS_MAX]}…"
    return f"{shown[0].lower()}{shown[1:]}"


class PreparedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch that is ready to be judged: the version to which it leads, and what must be stored before it applies."""

    base: str
    version: str
    reason: str = ""
    prepared: Raw = ABSENT
    """What the style of the run needs besides the patch itself."""
    definition: Definition | None = None
    graph: GraphModel | None = None
    """The graph in ``definition``, if it has one."""
    changes: list[str] = []
    """What the version changes, for people."""


class PatchParts(Protocol):
    """What the preparation of a patch uses."""

    @property
    def clock(self) -> Clock: ...

    @property
    def limits(self) -> PatchLimits: ...

    @property
    def definitions(self) -> Definitions: ...

    @property
    def hosts(self) -> Hosts | None: ...

    @property
    def catalogue(self) -> HostCatalogue | None: ...

    @property
    def tags(self) -> WorkflowTags: ...

    @property
    def compiled(self) -> CompiledDocuments: ...

    def document_context(self) -> DocumentContext: ...

    def code(self, workflow: str, version: str) -> Program | None:
        """Return the code of a workflow in this process, whether or not it hosts runs."""
        ...

    async def sees_version(self, workflow: str, version: str) -> bool:
        """Return whether the one who patches may know a stored version."""
        ...

    async def is_offered(self, workflow: str, version: str) -> bool:
        """Return whether a living host has this version."""
        ...

    async def replay(self, row: RunRow, version: str) -> tuple[int, Replayed]:
        """Replay a code run against a version in isolation. Returns its last event too. Raises RunUnreadable."""
        ...
