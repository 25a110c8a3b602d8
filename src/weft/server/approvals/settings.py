"""Where people are told that they are asked, as the environment says it."""

from __future__ import annotations

import os

import msgspec

from weft.errors import UsageError
from weft.tokens import SECRET_BYTES_MIN

PUBLIC = "WEFT_PUBLIC_URL"
"""The address under which people reach this server."""
TELL = "WEFT_APPROVALS_URL"
"""Where to send word of questions."""
SECRET = "WEFT_APPROVALS_SECRET"  # noqa: S105 - the name of a variable
"""What that word is signed with."""


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to tell of questions, and how links begin."""

    url: str
    secret: str
    public: str


def public_url() -> str:
    """How links to this server begin; empty: nobody said. Raises UsageError."""
    url = os.environ.get(PUBLIC, "").rstrip("/")
    if url and not url.startswith(("https://", "http://")):
        raise UsageError(f"{PUBLIC} is {url[:100]!r}, which is no address.", hint="https://weft.example.com")
    return url


def telling_here() -> Telling | None:
    """What the environment of this process says; None: nobody is told. Raises UsageError if some of it is missing."""
    url, secret = os.environ.get(TELL, ""), os.environ.get(SECRET, "")
    if not url and not secret:
        return None
    public = public_url()
    if not url.startswith(("https://", "http://")) or not public or len(secret.encode()) < SECRET_BYTES_MIN:
        raise UsageError(
            f"Telling others of questions needs {TELL}, {PUBLIC} and {SECRET} of at least {SECRET_BYTES_MIN} bytes.",
            hint='A secret: python -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return Telling(url=url, secret=secret, public=public)
