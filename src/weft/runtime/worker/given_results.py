"""Check the results that people give against the types of steps."""

from __future__ import annotations

from weft.runtime.catalogue import HostCatalogue
from weft.steps.python import PythonStep


def check_result(catalogue: HostCatalogue, step: str, raw: bytes) -> None:
    """Raise BadValue if a step could not return this JSON. Any result fits a step that the catalogue does not have."""
    body = catalogue.step(step)
    if isinstance(body, PythonStep):
        body.check_result(raw)
