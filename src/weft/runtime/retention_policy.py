"""How long runs are kept: ``[tool.weft.retention]`` in ``pyproject.toml``. Without it, nothing is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.core.durations import duration_ms
from weft.core.ids import TENANT_MARK, tenant_prefix
from weft.errors import BadDuration, UsageError
from weft.settings import PROJECT_FILE, project_table

NEVER = "never"
RETENTION_SECONDS = 60.0
"""How often a host looks for runs that need not be kept any longer."""
AGES = ("completed", "cancelled", "failed", "streams")
"""What has an age: runs by the status of their root, and output."""
STATUSES = AGES[:3]
LEVELS = ("workflow", "tenant")
_HINT = 'Write for example: [tool.weft.retention] completed = "90d", failed = "365d", keep_last = 10.'


class RetentionRule(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs are kept after the end of their tree, in milliseconds, by what has an age."""

    ages: Mapping[str, int | None] = {}
    """None: for ever. What is not named here is not set."""
    keep_last: int | None = None
    """How many runs of each workflow are kept in any case, the newest ones. None: not set."""


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of an installation. Where a workflow and a tenant both have one, the longer time counts."""

    default: RetentionRule = RetentionRule()
    workflow: Mapping[str, RetentionRule] = {}
    tenant: Mapping[str, RetentionRule] = {}

    @property
    def is_set(self) -> bool:
        """Return whether anything is ever deleted."""
        rules = (self.default, *self.workflow.values(), *self.tenant.values())
        return any(age is not None for rule in rules for age in rule.ages.values())

    def age(self, what: str, workflow: str, run_id: str) -> int | None:
        """Return how long this is kept, in milliseconds; None for ever."""
        special = [rule for rule in self._special_rules(workflow, run_id) if what in rule.ages]
        ages = [rule.ages[what] for rule in special or [self.default] if what in rule.ages]
        known = [age for age in ages if age is not None]
        return max(known) if known and len(known) == len(ages) else None

    def shortest(self, what: str) -> int | None:
        """Return the shortest time for which anything of this kind is kept; None if all of it is kept for ever."""
        rules = (self.default, *self.workflow.values(), *self.tenant.values())
        return min((age for rule in rules if (age := rule.ages.get(what)) is not None), default=None)

    def kept_workflows(self, what: str) -> list[str]:
        """Return the workflows of which nothing of this kind is ever deleted."""
        return [name for name, rule in self.workflow.items() if what in rule.ages and rule.ages[what] is None]

    def keep_last(self, workflow: str, run_id: str) -> int:
        """Return how many runs of the workflow are kept in any case."""
        special = [rule.keep_last for rule in self._special_rules(workflow, run_id) if rule.keep_last is not None]
        return max(special, default=self.default.keep_last or 0)

    def _special_rules(self, workflow: str, run_id: str) -> list[RetentionRule]:
        tenant = tenant_prefix(run_id).removeprefix(TENANT_MARK).removesuffix("/")
        found = (self.workflow.get(workflow), self.tenant.get(tenant) if tenant else None)
        return [rule for rule in found if rule is not None]


def project_retention_policy(path: Path = PROJECT_FILE) -> RetentionPolicy:
    """Read the policy of the project in the current folder. Raises UsageError with everything that is wrong."""
    return read_policy(project_table(path).get("retention", {}))


def single_policy(older: str) -> RetentionPolicy:
    """Return a policy that keeps all runs for one duration. Raises BadDuration."""
    age = duration_ms(older)
    return RetentionPolicy(default=RetentionRule(ages=dict.fromkeys(STATUSES, age)))


def read_policy(section: Any) -> RetentionPolicy:
    """Read a policy from a table of TOML. Raises UsageError with everything that is wrong."""
    wrong: list[str] = []
    if not isinstance(section, Mapping):
        raise UsageError("[tool.weft.retention] is not a table.", hint=_HINT)
    levels: dict[str, dict[str, RetentionRule]] = {}
    for level in LEVELS:
        tables = section.get(level, {})
        if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
            wrong.append(f"{level}: a table for each {level} is needed, such as [tool.weft.retention.{level}.NAME]")
            continue
        levels[level] = {name: _read_rule(table, f"{level}.{name}.", wrong) for name, table in tables.items()}
    default = _read_rule({name: value for name, value in section.items() if name not in LEVELS}, "", wrong)
    if wrong:
        raise UsageError(f"[tool.weft.retention] cannot be read: {'; '.join(wrong)}.", hint=_HINT)
    return RetentionPolicy(default=default, **levels)


def _read_rule(table: Mapping[str, Any], where: str, wrong: list[str]) -> RetentionRule:
    ages: dict[str, int | None] = {}
    keep_last: int | None = None
    for name, value in table.items():
        if name == "keep_last":
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000:
                keep_last = value
            else:
                wrong.append(f"{where}keep_last = {value!r} is not a number from 0 to 1,000,000")
        elif name == "streams" and where:
            wrong.append(f"{where}streams can only be set for all runs together")
        elif name not in AGES:
            wrong.append(f"{where}{name} is not known; it has {', '.join(AGES)} and keep_last")
        elif value == NEVER:
            ages[name] = None
        else:
            try:
                ages[name] = duration_ms(value)
            except BadDuration:
                wrong.append(f'{where}{name} = {value!r} is neither a duration, such as "90d", nor "never"')
    return RetentionRule(ages=ages, keep_last=keep_last)
