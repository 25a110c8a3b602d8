"""What graph documents and step documents share: reading text, typed fields, spellings, findings, schemas.

source.DocumentSource    a document with its file; turns problems into findings with a path and a line
text.read_text           YAML or JSON to data, with the line of every value
fields.Fields            one mapping of a document, read field by field
spellings, schemas, scripts, policies, questions    parts that both kinds of documents have
editor_schemas           parts of the JSON Schemas that editors use
"""
