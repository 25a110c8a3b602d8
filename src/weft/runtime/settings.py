"""The numbers an engine lives by. Users set none of them; tests and simulated worlds do."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, unless the name says otherwise."""

    lease_seconds: float = 5.0
    """A host whose heartbeat stood still for this long may be dead; its runs may be claimed."""
    heartbeat_thread: bool = False
    """Heartbeats have a thread and a connection of their own. Not in simulated worlds."""
    poll_seconds: float = 0.05
    """How often to ask whether another process wrote."""
    scan_seconds: float = 1.0
    """How often to look for hosts that are gone and runs that nobody works on."""
    spill_seconds: float = 1.0
    """A task that waited this long for a slot here may be performed elsewhere, if there is anybody."""
    idle_seconds: float = 30.0
    """A run with nothing to do here leaves memory after this."""
    resident_max: int = 5_000
    """With this many runs in memory, others wait at rest, and those idle longest make room for them."""
    slots: int = 1_000
    """Step bodies at once."""
    steps_held: bool = False
    """Steps wait until ``StepWorker.release``. ``app.run`` first says which run continues."""
    mailbox_max: int = 10_000
    """Commands from outside that may wait for one run; more are refused."""
    look_seconds: float = 1.0
    """How often to compare the wall clock with the times that runs wait for, however far away they are."""
    health_seconds: float = 30.0
    """How often to look whether the servers and scripts of steps are well; 0: never."""
    drain_seconds: float = 10.0
    """How long a shutdown waits for running steps."""
    blob_cache_bytes: int = 64 * 1024 * 1024
    recent_bytes: int = 4 * 1024 * 1024
    """Of inputs that are kept opened, counted as JSON."""
    tree_depth_max: int = 32
    """Runs below each other, from the root down."""
    tree_runs_max: int = 20_000
    """Open runs of one tree, the root included."""
    short_path: bool = True
    """Plain steps take the short path, and runs share the callbacks of the loop. Worlds are played without it too."""
    tolerant: bool = False
    """Divergence in arguments is only reported."""
