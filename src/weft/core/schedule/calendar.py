"""Nominal times, as the runtime computes them, and the names and delays that derive from them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Protocol

from weft.core.events import ScheduleSpec
from weft.core.ids import tenant_prefix

WORKFLOW = "weft.schedule"
"""The workflow of all schedules."""
ATTRIBUTE = "weft.schedule"
"""The attribute of runs that a schedule started: its name."""
STORED = "1"
"""The version of schedules that were made by the API or the command line. Every host runs them."""
_FOLDER = "schedule/"
_DECLARED = "code/"


class Calendar(Protocol):
    """Computes nominal times. It knows cron expressions and time zones, whose rules may change."""

    def times(self, spec: ScheduleSpec, after: int) -> Iterator[int]:
        """Yield the nominal times after a moment, in order, each once."""
        ...


def schedule_id(name: str) -> str:
    """Return the id of the run of a schedule."""
    return f"{_FOLDER}{name}"


def schedule_name(run_id: str) -> str:
    """Return the name of the schedule whose run has this id."""
    return run_id.removeprefix(tenant_prefix(run_id)).removeprefix(_FOLDER)


def declared_version(name: str) -> str:
    """Return the version of a schedule that is declared in code. Only hosts that declare it run it."""
    return f"{_DECLARED}{name}"


def is_declared(version: str) -> bool:
    """Return whether a schedule of this version is declared in code."""
    return version.startswith(_DECLARED)


def run_label(nominal: int) -> str:
    """Return the last part of the id of a run: its nominal time in UTC."""
    return f"{datetime.fromtimestamp(nominal / 1000, UTC):%Y%m%dT%H%M%SZ}"


def run_id_of(schedule: str, label: str) -> str:
    """Return the id of a run that the schedule with this run id starts."""
    return f"{tenant_prefix(schedule)}{schedule_name(schedule)}/{label}"


def start_at(name: str, spec: ScheduleSpec, nominal: int) -> int:
    """Return when the run of a nominal time starts: then, or later by a jitter that is the same on every host."""
    if not spec.jitter_ms:
        return nominal
    digest = blake2b(f"{name}\x1f{nominal}".encode(), digest_size=8).digest()
    return nominal + int.from_bytes(digest) % spec.jitter_ms
