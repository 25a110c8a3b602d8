"""The errors of HTTP calls, grouped by what the engine does about them.

    HttpFailed              a final answer: a 4xx, garbage, a bad redirect. Never retried
    ├── NotAnAnswer         the answer cannot be read as outputs
    └── HttpUnavailable     no answer, or a temporary error: retried, not before ``retry_after_ms``
    AddressRefused          the address may not be called (a ``NotAllowed``). Never retried

    AnsweredLater           no failure: the call was accepted and its answer comes by webhook

Answers beyond a limit are ``LimitExceeded``, requests that cannot be sent are ``BadValue``; both are final.
"""

from __future__ import annotations

from weft.errors import LimitExceeded, NotAllowed, UsageError, WeftError


class HttpFailed(WeftError):
    """The server answered, and a retry would get the same answer. ``status`` is None if it was not HTTP."""

    code = "http.failed"

    def __init__(
        self, message: str, *, status: int | None = None, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.status = status


class HttpUnavailable(HttpFailed):
    """No answer, or a temporary error. ``in_doubt``: the server may have acted on the request."""

    code = "http.unavailable"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_ms: int | None = None,
        in_doubt: bool = False,
        hint: str = "",
        code: str | None = None,
        **context: object,
    ) -> None:
        super().__init__(message, status=status, hint=hint, code=code, **context)
        self.retry_after_ms = retry_after_ms
        """How long the server asked to wait before a retry, if it did."""
        self.in_doubt = in_doubt


class NotAnAnswer(HttpFailed):
    """The answer cannot be read as outputs: it is not a JSON object."""

    code = "http.not_an_answer"


class AddressRefused(NotAllowed):
    """A private, local or otherwise special address that is not allowed. Nothing was sent."""

    code = "http.address_refused"


class AnsweredLater(Exception):
    """Raised by ``perform`` when the call was accepted and the answer will come by webhook with this token."""

    def __init__(self, token: str) -> None:
        super().__init__(token)
        self.token = token


def is_final(error: BaseException) -> bool:
    """Return whether a retry cannot help. Other errors, such as an unavailable store, may go away."""
    if isinstance(error, HttpUnavailable):
        return False
    return isinstance(error, HttpFailed | AddressRefused | UsageError | LimitExceeded)
