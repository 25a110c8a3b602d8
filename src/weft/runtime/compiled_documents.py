"""Documents that patches have made, compiled once: for a dry run and its patch, and for patches of many runs."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from weft.cache import BoundedCache
from weft.core import values

if TYPE_CHECKING:
    from weft.graphs.load import DocumentContext, LoadedGraph
    from weft.graphs.work import NodeTypes

DOCUMENTS_MAX = 16


class CompiledDocuments:
    """The newest documents that were compiled. Those with problems are not kept."""

    def __init__(self) -> None:
        self._known: BoundedCache[bytes, tuple[NodeTypes, LoadedGraph]] = BoundedCache(DOCUMENTS_MAX)
        """By content: the node types that a document was compiled with, and the graph."""

    def load(self, source: dict[str, Any], context: DocumentContext) -> LoadedGraph:
        """Compile a document, unless that was done before with the same node types. Raises BadGraph."""
        from weft.graphs.load import load_graph  # noqa: PLC0415 - slow to import

        key = blake2b(values.encode_trusted(source), digest_size=16).digest()
        types, loaded = self._known.get(key) or (None, None)
        if loaded is None or types != context.types:
            loaded = load_graph(source, context)
            self._known.put(key, (context.types, loaded))
        return loaded
