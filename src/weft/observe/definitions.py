"""The workflows that a store keeps: every version of every graph that was ever hosted."""

from __future__ import annotations

from weft.ports.store import Definition, Definitions
from weft.runtime.catalogue_log import CATALOGUE


async def stored_workflows(definitions: Definitions, name: str | None = None) -> list[Definition]:
    """Return all versions, by name and then oldest first. ``name``: only those of one workflow.

    The catalogue of steps is kept among them and is no workflow.
    """
    return [one for one in await definitions.versions(name) if one.name != CATALOGUE]
