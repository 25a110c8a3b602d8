"""How an HTTP call goes wrong, split by what the engine should do about it.

    HttpFailed              an answer that settles it: a 4xx, garbage, a redirect to nowhere. Never tried again
    ├── NotAnAnswer         the other side answered with what are no outputs
    └── HttpUnavailable     no answer, or "not now": tried again, not before `retry_after_ms`
    AddressRefused          the address is not one that may be called (a `NotAllowed`). Never tried again

    AnsweredLater           no failure: the call was accepted and its answer comes by webhook

Answers beyond a limit are `LimitExceeded`, requests that cannot be sent are `BadValue`; both are final.
"""

from __future__ import annotations

from weft.errors import LimitExceeded, NotAllowed, UsageError, WeftError


class HttpFailed(WeftError):
    """The other side answered, and trying again would bring the same answer. `status` is None if it was no HTTP."""

    code = "http.failed"

    def __init__(
        self, message: str, *, status: int | None = None, hint: str = "", code: str | None = None, **context: object
    ) -> None:
        super().__init__(message, hint=hint, code=code, **context)
        self.status = status


class HttpUnavailable(HttpFailed):
    """No answer, or one that says "later". `in_doubt`: the request may have been acted upon all the same."""

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
        """How long the other side asked to be left alone, if it did."""
        self.in_doubt = in_doubt


class NotAnAnswer(HttpFailed):
    """What came back cannot be read as outputs: no JSON, or no object."""

    code = "http.not_an_answer"


class AddressRefused(NotAllowed):
    """A private, local or otherwise special address that nobody allowed; nothing was sent."""

    code = "http.address_refused"


class AnsweredLater(Exception):
    """Raised by `perform` in place of an answer: the call was accepted, its answer comes by webhook with this token."""

    def __init__(self, token: str) -> None:
        super().__init__(token)
        self.token = token


def is_final(error: BaseException) -> bool:
    """Whether trying again cannot help. What is no error of ours (a bug, a store that is away) may pass."""
    if isinstance(error, HttpUnavailable):
        return False
    return isinstance(error, HttpFailed | AddressRefused | UsageError | LimitExceeded)
