"""Create API keys. A key is random, shown once, and stored as a digest.

A random key cannot be guessed, so its digest needs no slow hash.
"""

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
"""Scopes that a tenant cannot have, because workers perform the steps of all tenants."""


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a key to create."""

    name: str
    scopes: Sequence[str]
    groups: Sequence[str] = ()
    tenant: str = ""
    expires_at: Millis | None = None


def key_digest(key: str) -> str:
    """Return the digest under which a key is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def new_key(wanted: NewKey, now: Millis) -> tuple[str, ApiKey]:
    """Create a key. Returns its text, and the key as it is stored. Raises UsageError."""
    check_key_name(wanted.name)
    for group in wanted.groups:
        if not is_group(group) or not group.isprintable():
            raise UsageError(f"{group[:60]!r} is not a group.", hint="Write role:NAME or team:NAME.")
    scopes = _checked_scopes(wanted)
    text = f"{PREFIX}{secrets.token_urlsafe(RANDOM_BYTES)}"
    digest = key_digest(text)
    stored = ApiKey(
        id=digest[:ID_CHARS],
        digest=digest,
        name=wanted.name,
        scopes=scopes,
        groups=sorted(set(wanted.groups)),
        tenant=check_tenant(wanted.tenant),
        created_at=now,
        expires_at=wanted.expires_at,
    )
    return text, stored


def check_key_name(name: str) -> str:
    """Check that a name is printable and does not look like a group. Raises UsageError."""
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable() or name != name.strip() or is_group(name):
        raise UsageError(
            f"{name[:60]!r} cannot be used as a name.",
            hint=f"Use 1 to {NAME_CHARS_MAX} printable characters that do not begin with role: or team:.",
        )
    return name


def _checked_scopes(wanted: NewKey) -> list[str]:
    known = [str(scope) for scope in AccessScope]
    unknown = [scope for scope in wanted.scopes if scope not in known]
    if unknown or not wanted.scopes:
        what = f"{unknown[0][:60]!r} is not a scope." if unknown else "A key needs at least one scope."
        raise UsageError(what, hint=f"The scopes are {', '.join(known)}.")
    if wanted.tenant and OPERATORS_ONLY & set(wanted.scopes):
        raise UsageError("A key of a tenant cannot have the scope work.", hint="Leave out --tenant, or the scope work.")
    return [scope for scope in known if scope in wanted.scopes]


def caller_of_key(key: ApiKey, now: Millis) -> Identity | None:
    """Return the caller that a key identifies; None if the key is revoked or expired."""
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
        return None
    scopes = frozenset(AccessScope(scope) for scope in key.scopes if scope in list(AccessScope))
    return Identity(key.name, scopes, key.tenant, frozenset(key.groups))
