"""The error of pipelines, and what their steps raise. A pipeline adds the index and the name of the step."""

from __future__ import annotations

from typing import Final, Literal

from weft.errors import Failure, StepFailed

FAMILY: Final = "pipeline."
"""The beginning of the codes of pipelines."""

FaultCode = Literal["empty", "unknown_step", "bad_argument", "not_rows", "bad_value", "http", "too_large", "timeout"]


class PipelineFailed(StepFailed):
    """A pipeline is wrong, or a step of it failed. ``index`` counts its steps from 0; None is the pipeline itself."""

    code = "pipeline.bad_value"

    def __init__(
        self,
        message: str,
        *,
        index: int | None = None,
        failure: Failure | None = None,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        recorded = failure or Failure(type="PipelineFailed", message=message, code=code or self.code)
        super().__init__(message, failure=recorded, hint=hint, code=code, **context)
        self.index = index

    @property
    def in_doubt(self) -> bool:  # type: ignore[override]  # the request knows it
        """Whether a request of the pipeline got no answer, and may have been performed."""
        return bool(getattr(self.__cause__, "in_doubt", False))

    @property
    def retry_after_ms(self) -> int | None:
        """How long the server of a request asked to wait before a retry, if it did."""
        return getattr(self.__cause__, "retry_after_ms", None)


class StepFault(Exception):
    """A step cannot be performed. ``code`` is the part of the error's code after ``pipeline.``."""

    def __init__(self, code: FaultCode, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code: FaultCode = code
        self.message = message
        self.hint = hint

    def at(self, index: int, step: str) -> PipelineFailed:
        """Return the error for a fault of this step."""
        return pipeline_failed(self.code, f"{step}: {self.message}", index=index, hint=self.hint)


def pipeline_failed(code: str, message: str, *, index: int | None = None, hint: str = "") -> PipelineFailed:
    """Make the error for a pipeline, or for one of its steps."""
    place = "/pipeline" if index is None else f"/pipeline/{index}"
    full = f"{FAMILY}{code}"
    return PipelineFailed(f"{place}: {message}", index=index, hint=hint, code=full)
