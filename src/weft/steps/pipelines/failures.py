"""Which failures of pipelines are final."""

from __future__ import annotations

from weft.errors import LimitExceeded, NotAllowed, UsageError
from weft.pipelines.faults import PipelineFailed
from weft.steps.http.failures import HttpUnavailable


def is_final_failure(error: BaseException) -> bool:
    """Return whether a retry of a pipeline cannot help. Only a request without an answer is worth one."""
    if isinstance(error.__cause__, HttpUnavailable):
        return False
    return isinstance(error, PipelineFailed | NotAllowed | UsageError | LimitExceeded)
