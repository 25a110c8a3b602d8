"""Errors as clients see them: ``application/problem+json`` with a stable code, and never a stack trace."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.errors import (
    Conflict,
    Full,
    LimitExceeded,
    NameTaken,
    NotFound,
    NotRunning,
    Refused,
    RunUnreadable,
    StoreError,
    Unavailable,
    UnknownStep,
    UnknownWorkflow,
    UsageError,
    WeftError,
)
from weft.runtime.tenancy import without_prefix

BUSY = "limit.busy"
RETRY_AFTER_SECONDS = 1


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong (RFC 9457). ``code`` is stable: ``weft help CODE`` has a page about it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    findings: list[Any] = []
    """Everything that is wrong with a refused document."""
    plan: Any = None
    """What a refused patch would do, and all reasons against it."""


class RequestRefused(Exception):
    """A request that was refused before it became a command. ``retry_after`` is in seconds."""

    def __init__(self, status: int, code: str, detail: str, *, hint: str = "", retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.retry_after = retry_after
        self.allow = ""
        """The methods that are possible, if the method was wrong."""


TITLES = {
    400: "The request cannot be read",
    401: "Caller unknown",
    403: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    408: "Too slow",
    409: "Not possible now",
    410: "No longer available",
    413: "Too large",
    415: "Wrong media type",
    422: "The request is wrong",
    429: "Too many requests",
    431: "Too many headers",
    500: "An error inside Weft",
    503: "Not available now",
}

# A code that has a status of its own. A broken bundle is a file of the caller; a broken store is ours.
CODES = {BUSY: 429, "bundle.corrupt": 422, "policy.denied": 403, "policy.limit": 429}
# Otherwise, the first class that matches gives the status.
STATUSES: tuple[tuple[type[WeftError], int], ...] = (
    (NotFound, 404),
    (UnknownWorkflow, 404),
    (UnknownStep, 404),
    (NameTaken, 409),
    (NotRunning, 503),
    (LimitExceeded, 413),
    (Conflict, 409),
    (Unavailable, 503),
    (Full, 503),
    (RunUnreadable, 409),
    (StoreError, 500),
    (Refused, 409),
    (UsageError, 422),
)


def unknown_caller(detail: str) -> RequestRefused:
    """Return the refusal of a caller without valid credentials."""
    return RequestRefused(
        401, "access.unknown", detail, hint="Send Authorization: Bearer KEY. Create a key with weft keys create."
    )


def status_of(error: WeftError) -> int:
    """Return the HTTP status of an error."""
    if error.code in CODES:
        return CODES[error.code]
    return next((status for cls, status in STATUSES if isinstance(error, cls)), 500)


def problem_of(error: WeftError, tenant: str = "") -> ProblemDetails:
    """Return the problem document of an error. It names the runs of a tenant as the tenant does."""
    status = status_of(error)
    found = error.context.get("findings")
    findings = [msgspec.to_builtins(one, enc_hook=str) for one in found] if isinstance(found, list | tuple) else []
    plan = error.context.get("plan")
    details = problem(status, error.code, error.message, hint=error.hint, findings=findings)
    if plan is not None:
        details = msgspec.structs.replace(details, plan=msgspec.to_builtins(plan))
    return msgspec.convert(without_prefix(msgspec.to_builtins(details), tenant), ProblemDetails) if tenant else details


def problem(
    status: int, code: str, detail: str, *, hint: str = "", findings: list[Any] | None = None
) -> ProblemDetails:
    """Return a problem document."""
    return ProblemDetails(
        type=f"urn:weft:{code}",
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail,
        code=code,
        hint=hint,
        findings=findings or [],
    )
