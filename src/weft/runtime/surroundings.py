"""What a host gets from outside: a store, a clock, threads and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.ports.clock import Clock, Ids
from weft.ports.store import Store
from weft.runtime.settings import Settings
from weft.runtime.worker.flight import Flight, TracesAttempts
from weft.steps.task import Executor, StepBody


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that a host gets from outside."""

    store: Store
    clock: Clock
    ids: Ids
    executor: Executor
    settings: Settings = Settings()
    about: Mapping[str, Any] = {}
    """The description of this host, for people."""
    on_failure: Callable[[], None] = lambda: None
    """Called when this host can no longer work."""
    wrap_body: Callable[[Flight], StepBody | None] | None = None
    """Return a substitute for the body of a task. For simulated worlds."""
    traces: TracesAttempts | None = None
    """Traces attempts at tasks."""
