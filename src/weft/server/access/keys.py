"""API keys: random, shown once, stored as a digest. A random key cannot be guessed, so it needs no slow hash."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

import msgspec

from weft.core.ids import Millis
from weft.core.run.questions import is_group
from weft.errors import UsageError
from weft.ports.access import ApiKey
from weft.runtime.tenancy import check_tenant
from weft.server.identity import AccessScope, Identity

PREFIX = "weft_"
RANDOM_BYTES = 32
ID_CHARS = 10
NAME_CHARS_MAX = 200
OPERATORS_ONLY = frozenset({AccessScope.WORK})
"""Scopes that a tenant cannot have: workers perform the steps of all tenants."""


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a key to be made."""

    name: str
    scopes: Sequence[str]
    groups: Sequence[str] = ()
    tenant: str = ""
    expires_at: Millis | None = None


def digest_of(key: str) -> str:
    """Return the digest under which a key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def new_key(wanted: NewKey, now: Millis) -> tuple[str, ApiKey]:
    """Make a key. Returns its text and what is stored of it. Raises UsageError."""
    check_name(wanted.name)
    for group in wanted.groups:
        if not is_group(group) or not group.isprintable():
            raise UsageError(f"{group[:60]!r} names no group.", hint="Write role:NAME or team:NAME.")
    scopes = _checked_scopes(wanted)
    text = f"{PREFIX}{secrets.token_urlsafe(RANDOM_BYTES)}"
    digest = digest_of(text)
    kept = ApiKey(
        id=digest[:ID_CHARS],
        digest=digest,
        name=wanted.name,
        scopes=scopes,
        groups=sorted(set(wanted.groups)),
        tenant=check_tenant(wanted.tenant),
        created_at=now,
        expires_at=wanted.expires_at,
    )
    return text, kept


def check_name(name: str) -> str:
    """Refuse a name that is not printable or looks like a group. Raises UsageError."""
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable() or name != name.strip() or is_group(name):
        raise UsageError(
            f"{name[:60]!r} cannot be a name.",
            hint=f"1 to {NAME_CHARS_MAX} printable characters, not beginning with role: or team:.",
        )
    return name


def _checked_scopes(wanted: NewKey) -> list[str]:
    known = [str(scope) for scope in AccessScope]
    unknown = [scope for scope in wanted.scopes if scope not in known]
    if unknown or not wanted.scopes:
        what = f"{unknown[0][:60]!r} is no scope." if unknown else "A key needs at least one scope."
        raise UsageError(what, hint=f"Scopes: {', '.join(known)}.")
    if wanted.tenant and OPERATORS_ONLY & set(wanted.scopes):
        raise UsageError("A tenant has no workers of its own.", hint="Leave out --tenant, or the scope work.")
    return [scope for scope in known if scope in wanted.scopes]


def identity_of(key: ApiKey, now: Millis) -> Identity | None:
    """Return the caller that a key identifies; None if it is revoked or expired."""
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
        return None
    scopes = frozenset(AccessScope(scope) for scope in key.scopes if scope in list(AccessScope))
    return Identity(key.name, scopes, key.tenant, frozenset(key.groups))
