"""What all steps of pipelines have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec


class PipelineStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step of a pipeline. Its fields are its arguments."""

    grows: ClassVar[bool] = True
    """Whether the result can be larger than the data."""
    needs_process: ClassVar[bool] = False
    """Whether the step runs code of its author that cannot be stopped in a thread."""

    def check(self) -> None:
        """Check what the types of the arguments do not say. Raises StepFault."""

    def references(self) -> Iterator[str]:
        """Yield the references to stored data that the step reads."""
        yield from ()

    def apply(self, data: Any, stored: Mapping[str, Any]) -> Any:
        """Return the result of the step. ``stored`` has the data of its references. Raises StepFault."""
        raise AssertionError("every step has its own")
