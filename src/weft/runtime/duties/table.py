"""The table of duties: everything that a host does in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from weft.runtime.duties.ends import EndsDuty
from weft.runtime.duties.mail import MailDuty
from weft.runtime.duties.release import ReleaseDuty
from weft.runtime.duties.retention import RetentionDuty
from weft.runtime.duties.scheduler import MAIL, MEMORY, READY, RUNS, STORE, TASKS, Duty
from weft.runtime.duties.tasks import PACED_SECONDS, TasksDuty
from weft.runtime.settings import Settings

POLICY_SECONDS = 0.5
"""How often to look for a new policy. Every host obeys it within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of the host that the duties use."""

    mail: MailDuty
    ends: EndsDuty
    release: ReleaseDuty
    tasks: TasksDuty
    renew_tasks: Callable[[], Awaitable[object]]
    reconcile: Callable[[], Awaitable[object]]
    learn_graphs: Callable[[], Awaitable[object]]
    learn_steps: Callable[[], Awaitable[object]]
    find_dead: Callable[[], Awaitable[object]]
    claim_ready: Callable[[], Awaitable[object]]
    is_run_due: Callable[[], bool]
    is_turn_due: Callable[[], bool]
    retention: RetentionDuty
    check_health: Callable[[], Awaitable[object]]
    learn_policy: Callable[[], Awaitable[object]]
    publish_tasks: Callable[[], Awaitable[object]]


def duties(parts: Parts, settings: Settings) -> list[Duty]:
    """Return all duties, in the order in which one round runs them."""
    lease, scan = settings.lease_seconds, settings.scan_seconds
    by_time = frozenset[str]()
    table = [
        Duty("renew tasks", lease / 3, by_time, parts.renew_tasks),
        Duty("reconcile", lease, by_time, parts.reconcile),
        Duty("mail", scan, frozenset({MAIL}), parts.mail.run),
        Duty("ends", scan, frozenset({STORE, MAIL, RUNS}), parts.ends.run),
        Duty("graphs", scan, by_time, parts.learn_graphs),
        Duty("dead hosts", scan, frozenset({RUNS}), parts.find_dead),
        Duty("claims", scan, frozenset({READY, MAIL, RUNS}), parts.claim_ready, parts.is_run_due),
        Duty("queues", scan, frozenset({TASKS}), parts.tasks.learn_limits),
        Duty("tasks", scan, frozenset({STORE, TASKS}), parts.tasks.run, parts.is_turn_due),
        Duty("paced tasks", PACED_SECONDS, by_time, parts.tasks.take_paced),
        Duty("steps", scan, by_time, parts.learn_steps),
        Duty("policy", POLICY_SECONDS, by_time, parts.learn_policy),
        Duty("release", 0.0, frozenset({MEMORY}), parts.release.run),
    ]
    if settings.redis:
        table.insert(-1, Duty("streams", scan, frozenset({STORE, TASKS}), parts.publish_tasks))
    if settings.health_seconds:
        table.insert(-1, Duty("health", settings.health_seconds, by_time, parts.check_health))
    if settings.retention_seconds:
        table.insert(-1, Duty("retention", settings.retention_seconds, by_time, parts.retention.run))
    return table
