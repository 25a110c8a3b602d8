"""What an identity provider is trusted for, as the environment says it."""

from __future__ import annotations

import os

import msgspec

from weft.errors import UsageError

ISSUER, AUDIENCE, JWKS = "WEFT_JWT_ISSUER", "WEFT_JWT_AUDIENCE", "WEFT_JWT_JWKS"
NAME, TENANT = "WEFT_JWT_NAME", "WEFT_JWT_TENANT"


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Whose tokens are taken, and what their claims mean here."""

    issuer: str
    audience: str
    jwks: str
    """The address of the keys."""
    name: str = "sub"
    """The claim that names who it is."""
    tenant: str = ""
    """The claim that names the tenant, which every token then must have; empty: nobody has one."""


def jwt_settings_here() -> JwtSettings | None:
    """The settings of this process; None: no tokens are taken. Raises UsageError if only some are there."""
    given = {name: os.environ.get(name, "") for name in (ISSUER, AUDIENCE, JWKS)}
    if not any(given.values()):
        return None
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise UsageError(
            f"Tokens of an identity provider need {', '.join(missing)} too.",
            hint=f"Set {ISSUER}, {AUDIENCE} and {JWKS} (the address of its keys), or none of them.",
        )
    if not given[JWKS].startswith(("https://", "http://")):
        raise UsageError(f"{JWKS} is {given[JWKS][:100]!r}, which is no address.", hint="https://…/jwks.json")
    name, tenant = os.environ.get(NAME, "") or "sub", os.environ.get(TENANT, "")
    return JwtSettings(issuer=given[ISSUER], audience=given[AUDIENCE], jwks=given[JWKS], name=name, tenant=tenant)
