"""Change runs and the installation through a server: what the command line does itself beside a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from weft.authoring.handles import Handle
from weft.authoring.remote import PAGE, Remote, RemoteHandle
from weft.authoring.remote_bulk import RemoteBulk
from weft.authoring.remote_bundles import RemoteBundles
from weft.authoring.remote_schedules import RemoteSchedules
from weft.authoring.remote_workflows import RemoteWorkflows
from weft.core.ids import HostId, Millis, RunId
from weft.core.run.patch_plan import PatchPlan
from weft.ports.access import ApiKey
from weft.ports.tasks import QueueLimits
from weft.ports.wals import Loss
from weft.runtime.fork_order import ForkOrder
from weft.runtime.forks import Forked
from weft.runtime.orders import StartOrder
from weft.runtime.patches import PatchOptions
from weft.server.access.keys import NewKey
from weft.server.endpoints.goals import Changed
from weft.server.endpoints.keys import CreatedKey, KeyList, KeyView
from weft.server.endpoints.plans import FrozenPlan
from weft.server.endpoints.status import Acknowledged, StatusView
from weft.steps.codec import Codec

RESERVED = "weft."


class RemoteRunOperations:
    """Commands to runs, through a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self.bulks = RemoteBulk(remote)
        self.bundles = RemoteBundles(remote)
        self.schedules = RemoteSchedules(remote)
        self.workflows = RemoteWorkflows(remote)

    def run_handle(self, run_id: str) -> Handle[Any]:
        return RemoteHandle(self._remote, run_id, Codec.of(Any))

    async def start(self, order: StartOrder, catalogue: object = None) -> str:
        """Start a run. The server says who started it, and checks the input."""
        own = {name: value for name, value in order.attributes.items() if not name.startswith(RESERVED)}
        return (await self._remote.start(msgspec.structs.replace(order, attributes=own))).id

    async def fork(self, run_id: str, order: ForkOrder, *, by: str) -> Forked:
        return await RemoteHandle(self._remote, run_id, Codec.of(Any)).make_fork(order, by=by)

    async def patch(self, run_id: str, document: Mapping[str, Any], options: PatchOptions) -> PatchPlan:
        body = {"patch": document, **_patch_options(options)}
        return await self._remote.post(f"{_run(run_id)}/patch", body, PatchPlan)

    async def undo_patch(self, run_id: str, options: PatchOptions, *, redo: bool, ends: bool) -> PatchPlan:
        body = {"redo": redo, "ends": ends, **_patch_options(options)}
        return await self._remote.post(f"{_run(run_id)}/patch/undo", body, PatchPlan)

    async def change_letter(self, run_id: str, token: str, action: str) -> None:
        await self._remote.post(f"dlq/{quote(f'{run_id}:{token}', safe='')}/{action}", {}, msgspec.Raw)


class RemoteInstallationOperations:
    """Commands that concern the whole installation, through a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def limit_queue(self, name: str, limits: QueueLimits) -> None:
        body = {
            "concurrency": limits.concurrency,
            "rate": limits.rate,
            "per_seconds": limits.per_ms / 1000,
            "priority": limits.priority,
            "stream": limits.stream,
        }
        await self._remote.post(f"queues/{quote(name, safe='')}", body, msgspec.Raw, method="PUT")

    async def losses(self) -> Sequence[Loss]:
        """Return what hosts had acknowledged and Redis has lost."""
        found = (await self._remote.get_view("status", StatusView)).losses
        return [
            Loss(
                wal=one.wal,
                host=HostId(one.host),
                at=_ms(one.at),
                reason=one.reason,
                batches=one.batches,
                runs=[RunId(run) for run in one.runs],
            )
            for one in found
        ]

    async def acknowledge_losses(self) -> int:
        return (await self._remote.post("losses/acknowledge", {}, Acknowledged)).losses

    async def keys(self) -> Sequence[ApiKey]:
        """Return all keys, oldest first, without their digests."""
        found: list[KeyView] = []
        cursor: str | None = None
        while True:
            asked = [("limit", str(PAGE)), *([("cursor", cursor)] if cursor else [])]
            page = await self._remote.get_view("keys", KeyList, asked)
            found += page.keys
            cursor = page.cursor
            if cursor is None:
                return [_key_of_view(view) for view in reversed(found)]

    async def create_key(self, wanted: NewKey, now: Millis) -> tuple[str, ApiKey, bool]:
        """Create a key. Returns its text, the key, and whether the API was open until now."""
        body: dict[str, Any] = {name: getattr(wanted, name) for name in ("name", "scopes", "groups", "tenant")}
        if wanted.expires_at is not None:
            body["expires_seconds"] = (wanted.expires_at - now) / 1000
        # Not repeated: a second request would create a second key.
        made = await self._remote.post("keys", body, CreatedKey, pauses=())
        return made.secret, _key_of_view(made.key), made.closes

    async def revoke_key(self, key_id: str, _now: Millis) -> None:
        await self._remote.post(f"keys/{quote(key_id, safe='')}", {}, msgspec.Raw, method="DELETE")

    async def change_steps(self, action: str, document: Mapping[str, Any]) -> Sequence[str]:
        """Register or update the steps of a document. Returns the steps that changed."""
        method = "POST" if action == "register" else "PUT"
        return (await self._remote.post("steps", {"document": document}, Changed, method=method)).steps

    async def remove_step(self, step: str) -> Sequence[str]:
        return (await self._remote.post(f"steps/{quote(step, safe='')}", {}, Changed, method="DELETE")).steps

    async def freeze(self, goals: Sequence[str], given: Sequence[str], name: str) -> FrozenPlan:
        """Store the plan of goals as a graph, with the steps that the server has."""
        return await self._remote.post("plan/freeze", {"goals": goals, "given": given, "name": name}, FrozenPlan)


def _run(run_id: str) -> str:
    return f"runs/{quote(run_id, safe='')}"


def _patch_options(options: PatchOptions) -> dict[str, Any]:
    return {
        "by": options.by,
        "reason": options.reason,
        "expect": options.expect,
        "dry_run": options.dry_run,
        "wait": f"{options.wait_ms}ms" if options.wait_ms else "",
        "at": options.at,
        "review": options.review,
    }


def _key_of_view(view: KeyView) -> ApiKey:
    expires, revoked = view.expires_at, view.revoked_at
    return ApiKey(
        id=view.id,
        digest="",
        name=view.name,
        scopes=view.scopes,
        groups=view.groups,
        tenant=view.tenant,
        created_at=_ms(view.created_at),
        expires_at=_ms(expires) if expires is not None else None,
        revoked_at=_ms(revoked) if revoked is not None else None,
    )


def _ms(at: Any) -> Millis:
    return Millis(round(at.timestamp() * 1000))
