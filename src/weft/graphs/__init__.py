"""Graph documents: YAML, JSON or a dict, in any accepted spelling, become a compiled graph.

load.load_graph("leads.yaml")    a file, or a dict of the same shape -> LoadedGraph: graph, warnings, source
schema.document_schema()         JSON Schema of the document, for editors

Nothing is imported here, because the loader is slow to import and not every user needs it.
"""
