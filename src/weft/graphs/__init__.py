"""Graph documents: YAML, JSON or a dict, in any of the accepted spellings, to a compiled graph.

load_graph("leads.yaml")    a file, or a dict in the shape of one -> Loaded: graph, warnings, source
document_schema()           JSON Schema of the document, for editors
"""

from weft.graphs.load import Loaded, load_graph, parse_graph
from weft.graphs.schema import document_schema

__all__ = ["Loaded", "document_schema", "load_graph", "parse_graph"]
