"""The failures of model calls, grouped by what happens next.

    model.unavailable   no usable answer now: the task is attempted again, then the next alias of ``fallback`` is asked
    model.rejected      the provider will never answer this request: final
    model.context       the conversation is too long for the model: an agent shortens it and asks again

All of them are ``ModelFailed``.
"""

from __future__ import annotations

from weft.steps.http.failures import HttpFailed

UNAVAILABLE = "model.unavailable"
REJECTED = "model.rejected"
CONTEXT = "model.context"


class ModelFailed(HttpFailed):
    """A model gave no answer. ``code`` says what can help: ``model.unavailable``, ``.rejected`` or ``.context``."""

    code = UNAVAILABLE

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        is_transient: bool = False,
        retry_after_ms: int | None = None,
        in_doubt: bool = False,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, status=status, hint=hint, code=code, **context)
        self.is_transient = is_transient
        """Whether the same request may be answered later."""
        self.retry_after_ms = retry_after_ms
        """How long the provider asked to wait, if it did."""
        self.in_doubt = in_doubt
        """Whether the provider may have answered, so that the call may have cost something."""


def unavailable(message: str, *, in_doubt: bool = False) -> ModelFailed:
    """Return the failure of a call that got no usable answer, but may get one later."""
    return ModelFailed(message, is_transient=True, in_doubt=in_doubt)


def rejected(message: str, *, hint: str = "", status: int | None = None) -> ModelFailed:
    """Return the failure of a request that will never be answered."""
    return ModelFailed(message, code=REJECTED, hint=hint, status=status)
