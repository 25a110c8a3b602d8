"""List the workflows in a store: every version of every graph that was hosted."""

from __future__ import annotations

from weft.ports.store import Definition, Definitions
from weft.runtime.catalogue_log import CATALOGUE


async def stored_workflows(definitions: Definitions, name: str | None = None) -> list[Definition]:
    """Return all versions of all workflows, or of one, sorted by name and age.

    The catalogue of steps is stored in the same table but is not a workflow, so it is omitted.
    """
    return [definition for definition in await definitions.versions(name) if definition.name != CATALOGUE]
