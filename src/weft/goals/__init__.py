"""Step documents: YAML, JSON or a dict, in either spelling, become step definitions of the catalogue.

load_steps("steps.yaml", languages)   a file, or a dict of the same shape -> LoadedSteps: steps and their locations
admit(catalogue, loaded, languages)   the events that add all of them
document_schema()                     JSON Schema of the document, for editors
"""

from weft.goals.admission import admit_steps
from weft.goals.load import LoadedSteps, load_steps, parse_steps
from weft.goals.schema import document_schema

__all__ = ["LoadedSteps", "admit_steps", "document_schema", "load_steps", "parse_steps"]
