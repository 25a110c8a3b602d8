"""Create, list and revoke API keys. A new key is shown once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.cli.messages import say
from weft.cli.operations import installation_operations
from weft.cli.output import console, iso_time, print_json, print_table, time_text
from weft.cli.store_access import open_service, store_exists, store_label, url_of
from weft.core.durations import duration_ms
from weft.core.ids import Millis
from weft.errors import NotFound, UsageError
from weft.ports.access import ApiKey
from weft.runtime.service import RunService
from weft.server.access.keys import NewKey

NEVER = "never"


def requested_key(name: str, scopes: Sequence[str] | None, groups: Sequence[str] | None, tenant: str) -> NewKey:
    """Return the request for a new key from the options of the command."""
    return NewKey(name=name, scopes=scopes or [], groups=groups or [], tenant=tenant)


async def create_key(request: NewKey, *, expires: str, url: str | None, app: str | None, json: bool) -> None:
    """Create a key and print it. It cannot be shown again."""
    async with open_service(url, app, create=True) as service:
        now = Millis(service.clock.now_ms())
        until = None if expires == NEVER else Millis(now + duration_ms(expires))
        wanted = msgspec.structs.replace(request, expires_at=until)
        text, key, was_open = await installation_operations(service).create_key(wanted, now)
        if json:
            print_json({"key": text, **_key_document(key, now)})
        else:
            print(text, flush=True)
        validity = f"valid until {time_text(until)}" if until is not None else "valid until it is revoked"
        say(f"this is shown once: key {key.id} of {key.name}, with scopes {', '.join(key.scopes)}, {validity}")
        if was_open:
            say("the API of this store is closed from now on: every request needs a key")


async def print_keys(*, url: str | None, app: str | None, json: bool) -> None:
    """Print all keys, oldest first."""
    address = url_of(url, app)
    keys: list[ApiKey] = []
    now = Millis(0)
    if store_exists(address):
        async with open_service(address) as service:
            keys, now = list(await installation_operations(service).keys()), Millis(service.clock.now_ms())
    if json:
        print_json({"store": address, "keys": [_key_document(key, now) for key in keys]})
        return
    out = console()
    if not keys:
        out.print(f"No keys: the API is open to this machine, and to nobody else. Store: {store_label(address)}.")
        return
    rows = [
        (key.id, key.name, key.tenant, " ".join(key.scopes), " ".join(key.groups), _state(key, now)) for key in keys
    ]
    print_table(out, ("ID", "NAME", "TENANT", "SCOPES", "GROUPS", "STATE"), rows)
    out.print(f"[dim]Store: {store_label(address)}.[/dim]")


async def revoke_key(key_id: str, *, url: str | None, app: str | None) -> None:
    """Revoke a key. Servers refuse it within a second."""
    async with open_service(url, app) as service:
        key = await _find_key(service, key_id)
        await installation_operations(service).revoke_key(key.id, Millis(service.clock.now_ms()))
        print(f"{key.id} of {key.name} is revoked; servers refuse it within a second")


async def _find_key(service: RunService, text: str) -> ApiKey:
    """Find a key by its id, the beginning of its id, or its name. Raises NotFound, UsageError."""
    keys = await installation_operations(service).keys()
    found = [key for key in keys if key.id.startswith(text)] or [key for key in keys if key.name == text]
    if len(found) > 1:
        names = ", ".join(f"{key.id} ({key.name})" for key in found[:5])
        raise UsageError(f"{text!r} matches several keys: {names}.", hint="Write the whole id.")
    if not found:
        raise NotFound(f"There is no key {text!r} in {service.store.url}.", hint="weft keys list shows all keys.")
    return found[0]


def _state(key: ApiKey, now: Millis) -> str:
    if key.revoked_at is not None:
        return f"revoked {time_text(key.revoked_at)}"
    if key.expires_at is None:
        return "good"
    return f"good until {time_text(key.expires_at)}" if key.expires_at > now else f"expired {time_text(key.expires_at)}"


def _key_document(key: ApiKey, now: Millis) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "scopes": key.scopes,
        "groups": key.groups,
        "created_at": iso_time(key.created_at),
        "expires_at": iso_time(key.expires_at),
        "revoked_at": iso_time(key.revoked_at),
        "good": key.revoked_at is None and (key.expires_at is None or key.expires_at > now),
    }
