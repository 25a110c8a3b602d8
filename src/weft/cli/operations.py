"""What commands do to runs and to the installation, beside a store or through a server. Reads need no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from weft.authoring.handles import Handle
from weft.core.ids import Millis, RunId
from weft.runtime.service import RunService

if TYPE_CHECKING:  # each command loads only what it needs
    from weft.agents.policy.policy_rules import PolicyRules
    from weft.agents.policy.verdicts import Asked, PolicyVerdict
    from weft.authoring.bulk import BulkAccess
    from weft.authoring.remote import Remote
    from weft.authoring.schedules import ScheduleAccess
    from weft.authoring.workflow_versions import WorkflowAccess
    from weft.core.run.patch_plan import PatchPlan
    from weft.ports.access import ApiKey
    from weft.ports.tasks import QueueLimits
    from weft.ports.wals import Loss
    from weft.runtime.bundles.importer import Imported
    from weft.runtime.catalogue import HostCatalogue
    from weft.runtime.fork_order import ForkOrder
    from weft.runtime.forks import Forked
    from weft.runtime.orders import StartOrder
    from weft.runtime.patches import PatchOptions
    from weft.runtime.policy_admin import PolicyVersion
    from weft.server.access.keys import NewKey


class BundleAccess(Protocol):
    """Runs as files."""

    async def export(
        self, run_id: str, *, tree: bool = False, streams: bool = False, redact: Sequence[str] = ()
    ) -> bytes: ...

    async def move(self, run_id: str, *, to: str = "", reason: str = "", by: str = "") -> bytes: ...

    async def import_(self, data: bytes, *, adopt: bool = False, by: str = "") -> Imported: ...


class RunOperations(Protocol):
    """Commands to runs."""

    @property
    def bulks(self) -> BulkAccess: ...

    @property
    def bundles(self) -> BundleAccess: ...

    @property
    def schedules(self) -> ScheduleAccess: ...

    @property
    def workflows(self) -> WorkflowAccess: ...

    def run_handle(self, run_id: str) -> Handle[Any]: ...

    async def start(self, order: StartOrder, catalogue: HostCatalogue | None = None) -> str: ...

    async def fork(self, run_id: str, order: ForkOrder, *, by: str) -> Forked: ...

    async def patch(self, run_id: str, document: Mapping[str, Any], options: PatchOptions) -> PatchPlan: ...

    async def undo_patch(self, run_id: str, options: PatchOptions, *, redo: bool, ends: bool) -> PatchPlan: ...

    async def change_letter(self, run_id: str, token: str, action: str) -> None: ...


class InstallationOperations(Protocol):
    """Commands that concern the whole installation."""

    async def limit_queue(self, name: str, limits: QueueLimits) -> None: ...

    async def keys(self) -> Sequence[ApiKey]: ...

    async def create_key(self, wanted: NewKey, now: Millis) -> tuple[str, ApiKey, bool]: ...

    async def revoke_key(self, key_id: str, now: Millis) -> None: ...

    async def losses(self) -> Sequence[Loss]: ...

    async def acknowledge_losses(self) -> int: ...


class PolicyOperations(Protocol):
    """Commands to the policy of the installation."""

    async def show(self, version: int | None = None) -> PolicyVersion: ...

    async def history(self) -> Sequence[PolicyVersion]: ...

    async def set(self, text: str, *, by: str, reason: str, file: str) -> PolicyVersion: ...

    async def test(self, asked: Asked, own: PolicyRules | None = None) -> PolicyVerdict: ...


def remote_of(service: RunService) -> Remote | None:
    """Return the connection to the server that a service reads through; None beside a store."""
    remote: Remote | None = getattr(service, "remote", None)
    return remote


def run_operations(service: RunService) -> RunOperations:
    """Return the commands to the runs of a store or server."""
    remote = remote_of(service)
    if remote is None:
        return StoreRunOperations(service)
    from weft.authoring.remote_operations import RemoteRunOperations

    return RemoteRunOperations(remote)


def installation_operations(service: RunService) -> InstallationOperations:
    """Return the commands to a store or server as a whole."""
    remote = remote_of(service)
    if remote is None:
        return StoreInstallationOperations(service)
    from weft.authoring.remote_operations import RemoteInstallationOperations

    return RemoteInstallationOperations(remote)


def policy_operations(service: RunService) -> PolicyOperations:
    """Return the commands to the policy of a store or server."""
    remote = remote_of(service)
    if remote is None:
        from weft.runtime.policy_admin import PolicyAdmin

        return PolicyAdmin(service)
    from weft.authoring.remote_policy import RemotePolicy

    return RemotePolicy(remote)


class StoreRunOperations:
    """Commands to runs, beside the store."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    @property
    def bulks(self) -> BulkAccess:
        from weft.runtime.bulk import BulkService

        return BulkService(self._service)

    @property
    def bundles(self) -> BundleAccess:
        from weft.runtime.bundles.service import BundleService

        return BundleService(self._service)

    @property
    def schedules(self) -> ScheduleAccess:
        from weft.runtime.schedules import ScheduleService

        return ScheduleService(self._service)

    @property
    def workflows(self) -> WorkflowAccess:
        from weft.runtime.versions import VersionService

        return VersionService(self._service)

    def run_handle(self, run_id: str) -> Handle[Any]:
        from weft.steps.codec import Codec

        return Handle(self._service, RunId(run_id), Codec.of(Any))

    async def start(self, order: StartOrder, catalogue: HostCatalogue | None = None) -> str:
        return (await self._service.start(order, catalogue)).id

    async def fork(self, run_id: str, order: ForkOrder, *, by: str) -> Forked:
        from weft.runtime.forks import ForkService

        return await ForkService(self._service).fork(run_id, order, by=by)

    async def patch(self, run_id: str, document: Mapping[str, Any], options: PatchOptions) -> PatchPlan:
        from weft.runtime.patches import PatchService

        return await PatchService(self._service).patch(run_id, document, options)

    async def undo_patch(self, run_id: str, options: PatchOptions, *, redo: bool, ends: bool) -> PatchPlan:
        from weft.runtime.patches import PatchService

        return await PatchService(self._service).undo(run_id, options, redo=redo, ends=ends)

    async def change_letter(self, run_id: str, token: str, action: str) -> None:
        from weft.core import commands as c

        command = c.RequeueLetter(token) if action == "requeue" else c.DiscardLetter(token)
        await self._service.tell(RunId(run_id), command)


class StoreInstallationOperations:
    """Commands to a store as a whole."""

    def __init__(self, service: RunService) -> None:
        self._store = service.store

    async def limit_queue(self, name: str, limits: QueueLimits) -> None:
        from weft.runtime.worker_streams.names import check_queue

        check_queue(name, limits)
        await self._store.tasks.limit(name, None if limits.is_plain else limits)

    async def losses(self) -> Sequence[Loss]:
        return await self._store.wals.losses() if self._store.wals is not None else ()

    async def acknowledge_losses(self) -> int:
        return await self._store.wals.acknowledge_losses() if self._store.wals is not None else 0

    async def keys(self) -> Sequence[ApiKey]:
        return await self._store.access.keys()

    async def create_key(self, wanted: NewKey, now: Millis) -> tuple[str, ApiKey, bool]:
        from weft.server.access.keys import new_key

        text, key = new_key(wanted, now)
        was_open = await self._store.access.is_open()
        await self._store.access.add(key)
        return text, key, was_open

    async def revoke_key(self, key_id: str, now: Millis) -> None:
        await self._store.access.revoke(key_id, now=now)
