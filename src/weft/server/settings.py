"""Read the settings of the server from environment variables: identity provider, public URL, notifications."""

from __future__ import annotations

import os

import msgspec

from weft.errors import UsageError
from weft.tokens import SECRET_BYTES_MIN

JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS = "WEFT_JWT_ISSUER", "WEFT_JWT_AUDIENCE", "WEFT_JWT_JWKS"
JWT_NAME, JWT_TENANT = "WEFT_JWT_NAME", "WEFT_JWT_TENANT"
PUBLIC_URL = "WEFT_PUBLIC_URL"
APPROVALS_URL = "WEFT_APPROVALS_URL"
APPROVALS_SECRET = "WEFT_APPROVALS_SECRET"  # noqa: S105 - the name of a variable
_SCHEMES = ("https://", "http://")


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The identity provider whose tokens are accepted, and what their claims mean."""

    issuer: str
    audience: str
    jwks: str
    """The URL of its public keys."""
    name: str = "sub"
    """The claim with the caller's name."""
    tenant: str = ""
    """The claim with the tenant, which every token must then have. Empty if tokens have no tenant."""


def read_jwt_settings() -> JwtSettings | None:
    """Return the settings for tokens, or None if no tokens are accepted. Raises UsageError if some are missing."""
    variables = {name: os.environ.get(name, "") for name in (JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS)}
    if not any(variables.values()):
        return None
    missing = [name for name, value in variables.items() if not value]
    if missing:
        raise UsageError(
            f"To accept tokens of an identity provider, also set {', '.join(missing)}.",
            hint=f"Set {JWT_ISSUER}, {JWT_AUDIENCE} and {JWT_JWKS} (the URL of its keys), or none of them.",
        )
    if not variables[JWT_JWKS].startswith(_SCHEMES):
        raise UsageError(
            f"{JWT_JWKS} is {variables[JWT_JWKS][:100]!r}, which is not a URL.", hint="https://…/jwks.json"
        )
    return JwtSettings(
        issuer=variables[JWT_ISSUER],
        audience=variables[JWT_AUDIENCE],
        jwks=variables[JWT_JWKS],
        name=os.environ.get(JWT_NAME, "") or "sub",
        tenant=os.environ.get(JWT_TENANT, ""),
    )


class NotifierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The receiver of notifications about questions, the secret that signs them, and the URL that links begin with."""

    url: str
    secret: str
    public: str


def public_url() -> str:
    """Return the URL under which people reach this server; empty if it is not set. Raises UsageError."""
    url = os.environ.get(PUBLIC_URL, "").rstrip("/")
    if url and not url.startswith(_SCHEMES):
        raise UsageError(f"{PUBLIC_URL} is {url[:100]!r}, which is not a URL.", hint="https://weft.example.com")
    return url


def read_notifier_settings() -> NotifierSettings | None:
    """Return the settings for notifications, or None to send none. Raises UsageError if some are missing."""
    url, secret = os.environ.get(APPROVALS_URL, ""), os.environ.get(APPROVALS_SECRET, "")
    if not url and not secret:
        return None
    public = public_url()
    if not url.startswith(_SCHEMES) or not public or len(secret.encode()) < SECRET_BYTES_MIN:
        raise UsageError(
            f"Notifications about questions need {APPROVALS_URL}, {PUBLIC_URL} and {APPROVALS_SECRET} "
            f"of at least {SECRET_BYTES_MIN} bytes.",
            hint='Create a secret: python -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return NotifierSettings(url=url, secret=secret, public=public)
