"""JSON Schema of the graph document, for editors."""
from typing import Any
def document_schema() -> dict[str, Any]:
    return {}
