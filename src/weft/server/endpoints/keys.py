"""API keys: list them, create one, revoke one. A new key is shown once."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.core.ids import Millis
from weft.errors import NotFound
from weft.ports.access import ApiKey
from weft.server import views
from weft.server.access.keys import NewKey, new_key
from weft.server.cursors import cut_page
from weft.server.request import ApiCall

EXPIRES_SECONDS_MAX = 10 * 366 * 86_400


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret."""

    id: str
    name: str
    scopes: list[str]
    groups: list[str]
    tenant: str
    created_at: views.Moment
    expires_at: views.Moment | None
    revoked_at: views.Moment | None
    is_valid: bool


class KeyList(msgspec.Struct, frozen=True):
    """API keys, newest first."""

    keys: list[KeyView]
    cursor: str | None


class KeyBody(views.Form, frozen=True, kw_only=True):
    """A key to create. Groups are those for which its user may answer questions, such as ``role:ops``."""

    name: views.Name
    scopes: Annotated[list[views.Name], Meta(min_length=1, max_length=10)]
    groups: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    tenant: Annotated[str, Meta(max_length=63)] = ""
    expires_seconds: Annotated[float, Meta(gt=0, le=EXPIRES_SECONDS_MAX)] | None = None
    """When it expires, counted from now; null if never."""


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key. ``secret`` is shown this once. ``closes`` says that the server was open until now."""

    secret: str
    key: KeyView
    closes: bool


async def list_keys(call: ApiCall) -> KeyList:
    """Return a page of all keys that were ever made."""
    query = call.query_as(views.PageQuery)
    now = call.service.clock.now_ms()
    newest = list(reversed(await call.service.store.access.keys()))
    page, cursor = cut_page(newest, query.limit, query.cursor)
    return KeyList([_key_view(key, now) for key in page], cursor)


async def create_key(call: ApiCall) -> CreatedKey:
    """Create a key and return its secret. Raises UsageError."""
    new, access, now = call.body_as(KeyBody), call.service.store.access, call.service.clock.now_ms()
    until = Millis(now + round(new.expires_seconds * 1000)) if new.expires_seconds is not None else None
    wanted = NewKey(name=new.name, scopes=new.scopes, groups=new.groups, tenant=new.tenant, expires_at=until)
    secret, key = new_key(wanted, now)
    was_open = await access.is_open()
    await access.add(key)
    call.services.keys_changed()
    return CreatedKey(secret=secret, key=_key_view(key, now), closes=was_open)


async def revoke_key(call: ApiCall) -> KeyView:
    """Revoke a key. Servers refuse it within a second. Raises NotFound."""
    access, now, key_id = call.service.store.access, call.service.clock.now_ms(), call.parameters["key"]
    if not await access.revoke(key_id, now=now):
        raise NotFound(f"There is no key {key_id[:60]!r}.", hint="weft keys list shows all keys.")
    call.services.keys_changed()
    (found,) = [key for key in await access.keys() if key.id == key_id]
    return _key_view(found, now)


def _key_view(key: ApiKey, now: Millis) -> KeyView:
    return KeyView(
        id=key.id,
        name=key.name,
        scopes=key.scopes,
        groups=key.groups,
        tenant=key.tenant,
        created_at=views.required_time(key.created_at),
        expires_at=views.api_time(key.expires_at),
        revoked_at=views.api_time(key.revoked_at),
        is_valid=key.revoked_at is None and (key.expires_at is None or key.expires_at > now),
    )
