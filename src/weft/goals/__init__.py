"""Documents of steps: YAML, JSON or a dict, in either spelling, to definitions of the catalogue.

load_steps("steps.yaml", languages)   a file, or a dict in the shape of one -> Loaded: steps, and where they stand
admit(catalogue, loaded, languages)   the events that take all of them in
document_schema()                     JSON Schema of the document, for editors
"""

from weft.goals.admitting import admit
from weft.goals.load import Loaded, load_steps, parse_steps
from weft.goals.schema import document_schema

__all__ = ["Loaded", "admit", "document_schema", "load_steps", "parse_steps"]
