"""What tests of pipelines use."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from weft.pipelines.faults import PipelineFailed
from weft.pipelines.perform import perform_steps
from weft.pipelines.pipeline import read_pipeline


def apply(data: Any, *steps: dict[str, Any], stored: Mapping[str, Any] | None = None) -> Any:
    """Perform steps on data, in this process."""
    known = {name: msgspec.json.encode(value) for name, value in (stored or {}).items()}
    result = perform_steps(read_pipeline(list(steps)).steps, msgspec.json.encode(data), known)
    return msgspec.json.decode(result)


def refusal(data: Any, *steps: dict[str, Any]) -> PipelineFailed:
    """Return why steps cannot be performed."""
    with pytest.raises(PipelineFailed) as refused:
        apply(data, *steps)
    return refused.value


def code(data: Any, *steps: dict[str, Any]) -> tuple[str, int | None]:
    """Return the code of a refusal and the index of the step."""
    found = refusal(data, *steps)
    return found.code, found.index
