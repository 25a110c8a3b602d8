"""The headers of the page of the web UI: it may load only what its own server has, and run only scripts from there."""

from __future__ import annotations

import secrets
from typing import Final

NONCE_BYTES: Final = 18
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)


def new_nonce() -> str:
    """Return the nonce of one page, by which the text editor may add its own style rules."""
    return secrets.token_urlsafe(NONCE_BYTES)


def page_headers(nonce: str) -> dict[str, str]:
    """Return the headers that keep a page to its own server."""
    return {
        "content-security-policy": _POLICY.format(nonce=nonce),
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
    }
