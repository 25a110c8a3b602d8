"""The names of streams and keys in Redis. Those of a tenant have a prefix of their own, for the ACLs of its workers."""

from __future__ import annotations

import msgspec

from weft.core.ids import TENANT_MARK
from weft.errors import UsageError
from weft.ports.tasks import QueueLimits
from weft.runtime.held_models import MODEL_QUEUE

_TASKS, _DONE = "wf.tasks.", "wf.done"


class StreamNames(msgspec.Struct, frozen=True):
    """The names that one deployment uses."""

    prefix: str = ""

    def tasks(self, queue: str, tenant: str = "") -> str:
        """Return the stream of the tasks of a queue."""
        return f"{self._tenant_prefix(tenant)}{_TASKS}{queue}"

    def done(self, tenant: str = "") -> str:
        """Return the stream of answers."""
        return f"{self._tenant_prefix(tenant)}{_DONE}"

    def done_of(self, tasks: str) -> str:
        """Return the stream of the answers to the tasks of a stream."""
        return f"{tasks.partition(_TASKS)[0]}{_DONE}"

    @property
    def bad(self) -> str:
        """Return the stream of answers that could not be read."""
        return f"{self.prefix}wf.bad"

    @property
    def owner(self) -> str:
        """Return the key that names the deployment that uses this prefix."""
        return f"{self.prefix}wf.owner"

    @property
    def keeper(self) -> str:
        """Return the key that names the host that looks after published tasks."""
        return f"{self.prefix}wf.keeper"

    @property
    def streams(self) -> str:
        """Return the set of all streams on which tasks were published."""
        return f"{self.prefix}wf.streams"

    def _tenant_prefix(self, tenant: str) -> str:
        return f"{self.prefix}t:{tenant}:" if tenant else self.prefix


def check_queue(name: str, limits: QueueLimits) -> None:
    """Refuse a stream of tasks that only a host can perform. Raises UsageError."""
    if limits.stream and name.startswith(MODEL_QUEUE):
        raise UsageError(
            f"The queue {name} cannot be a stream: hosts call the models.",
            hint="Give the steps that stream workers perform a queue of their own.",
        )


def split_tenant(run_id: str) -> tuple[str, str]:
    """Return the tenant of a run, empty if it has none, and the id of the run that the tenant uses."""
    if not run_id.startswith(TENANT_MARK):
        return "", run_id
    tenant, _, own = run_id.removeprefix(TENANT_MARK).partition("/")
    return tenant, own
