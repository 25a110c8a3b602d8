"""The table of duties: everything that a host does in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from weft.runtime.duties.ends import EndsDuty
from weft.runtime.duties.mail import MailDuty
from weft.runtime.duties.release import ReleaseDuty
from weft.runtime.duties.scheduler import MAIL, MEMORY, RUNS, STORE, TASKS, Duty
from weft.runtime.duties.tasks import PACED_SECONDS, TasksDuty
from weft.runtime.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the duties are made of."""

    mail: MailDuty
    ends: EndsDuty
    release: ReleaseDuty
    tasks: TasksDuty
    renew_tasks: Callable[[], Awaitable[object]]
    reconcile: Callable[[], Awaitable[object]]
    learn_graphs: Callable[[], Awaitable[object]]
    learn_steps: Callable[[], Awaitable[object]]
    scan: Callable[[], Awaitable[object]]
    is_run_due: Callable[[], bool]
    check_health: Callable[[], Awaitable[object]]


def duties(parts: Parts, settings: Settings) -> list[Duty]:
    """Return all duties, in the order in which one round runs them."""
    lease, scan = settings.lease_seconds, settings.scan_seconds
    news, all_runs = frozenset({STORE}), frozenset({STORE, MAIL, RUNS})
    table = [
        Duty("renew tasks", lease / 3, frozenset(), parts.renew_tasks),
        Duty("reconcile", lease, frozenset(), parts.reconcile),
        Duty("mail", scan, frozenset({STORE, MAIL}), parts.mail.run),
        Duty("ends", scan, all_runs, parts.ends.run),
        Duty("graphs", scan, all_runs, parts.learn_graphs),
        Duty("scan", scan, all_runs, parts.scan, parts.is_run_due),
        Duty("tasks", scan, frozenset({STORE, TASKS}), parts.tasks.run),
        Duty("paced tasks", PACED_SECONDS, frozenset(), parts.tasks.take_paced),
        Duty("steps", scan, news, parts.learn_steps),
        Duty("release", 0.0, frozenset({MEMORY}), parts.release.run),
    ]
    if settings.health_seconds:
        table.insert(-1, Duty("health", settings.health_seconds, frozenset(), parts.check_health))
    return table
