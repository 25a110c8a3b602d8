"""The settings of a host. Most of them are changed only by tests and simulated worlds."""

from __future__ import annotations

import msgspec

from weft.ports.step_logs import LogLimits
from weft.runtime.patch_limits import DEFAULT_LIMITS, PatchLimits
from weft.runtime.retention_policy import RetentionPolicy
from weft.runtime.tool_settings import ToolSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a host, in seconds unless the name says otherwise."""

    lease_seconds: float = 5.0
    """A host that sent no heartbeat for this long may be dead; its runs may be claimed."""
    heartbeat_thread: bool = False
    """Whether heartbeats have their own thread and connection. False in simulated worlds."""
    poll_seconds: float = 0.05
    """How often to check whether another process wrote."""
    scan_seconds: float = 1.0
    """How often to search for dead hosts and for runs without a living owner."""
    spill_seconds: float = 1.0
    """A task that waited this long for a slot here is offered to other hosts, if there are any."""
    idle_seconds: float = 30.0
    """A run with nothing to do leaves memory after this time."""
    resident_max: int = 5_000
    """With this many runs in memory, other runs wait, and the runs that have been idle longest make room."""
    slots: int = 1_000
    """How many step bodies run at once."""
    steps_held: bool = False
    """Whether steps wait for ``StepWorker.release``, so that ``app.run`` can first say which run continues."""
    mailbox_max: int = 10_000
    """How many commands from outside may wait for one run; more are refused."""
    look_seconds: float = 1.0
    """How often to compare the wall clock with the times that runs wait for."""
    health_seconds: float = 30.0
    """How often to check the health of the servers and scripts of steps; 0 means never."""
    drain_seconds: float = 10.0
    """How long a shutdown waits for running steps."""
    blob_cache_bytes: int = 64 * 1024 * 1024
    recent_bytes: int = 4 * 1024 * 1024
    """The limit on decoded inputs in memory, counted in bytes of JSON."""
    tree_depth_max: int = 32
    """The maximum depth of a tree of runs, counted from the root."""
    tree_runs_max: int = 20_000
    """The maximum number of open runs in a tree, including the root."""
    short_path: bool = True
    """Whether plain steps take the short path and runs share callbacks of the loop. Simulations also run without it."""
    retention: RetentionPolicy = RetentionPolicy()
    """How long runs are kept."""
    retention_seconds: float = 0.0
    """How often to look for what need not be kept any longer; 0 means never."""
    patch_limits: PatchLimits = DEFAULT_LIMITS
    """How many patches a run can have."""
    tools: ToolSettings = ToolSettings()
    """When pipelines of agents become tools."""
    step_logs: LogLimits | None = LogLimits()
    """How much is kept of what the steps of a run print; None keeps nothing."""
    redis: str = ""
    """The URL of a Redis server; empty without one."""
    redis_prefix: str = ""
    """The beginning of the names of streams for workers."""
    stream_lease_seconds: float = 30.0
    """How long a worker on a stream may leave its task untouched before it counts as gone."""
    tolerant: bool = False
    """Whether a divergence in arguments is only logged."""
