"""Graph documents: YAML, JSON or a dict, in any of the accepted spellings, to a compiled graph.

load.load_graph("leads.yaml")    a file, or a dict in the shape of one -> Loaded: graph, warnings, source
schema.document_schema()         JSON Schema of the document, for editors

Nothing is imported here: the readers of documents are heavy, and their smaller parts serve others too.
"""
