"""The rules of a policy: what is permitted, what a person must approve, and how much each tenant may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from weft.agents.policy.globs import is_host_match, is_match
from weft.agents.policy.subjects import EVERYBODY, Subjects
from weft.agents.policy.verdicts import Action, Asked, Permission
from weft.conditions import Condition, EvaluationFailed, compile_condition
from weft.core.budgets import amount_text, currency_of
from weft.core.plurals import pluralize

WindowLength = Literal["minute", "hour", "day", "month"]
RUNS = "runs"


class PermissionRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that allows something, denies it, or asks people first."""

    permission: Permission
    action: Action
    names: tuple[str, ...]
    to: Subjects = EVERYBODY
    when: Condition | None = None
    of: tuple[str, ...] = ()
    """Whom to ask; nobody in particular if it is empty."""
    version: str = ""
    """The version of the policy that has the rule."""

    def applies(self, asked: Asked) -> bool:
        """Return whether the rule applies to this.

        A condition that cannot be evaluated counts as met, except in a rule that allows something.
        """
        compare = is_host_match if self.action == "host" else is_match
        return (
            any(compare(pattern, asked.name) for pattern in self.names)
            and self.to.include(asked)
            and is_met(self.when, asked, if_failed=self.permission != "allow")
        )

    @property
    def needs_run(self) -> bool:
        """Whether the rule depends on who started the run, or on the attributes of the run."""
        is_about_people = any(kind in ("user", "role") for kind, _ in self.to.patterns)
        return is_about_people or (self.when is not None and "attributes" in self.when.names)

    def __reduce__(self) -> tuple[Callable[..., PermissionRule], tuple[dict[str, Any], str]]:
        """Return what another process makes the rule of: a compiled condition is its text there."""
        given = {field: getattr(self, field) for field in self.__struct_fields__}
        return _with_condition, ({**given, "when": None}, self.when.text if self.when is not None else "")

    def __str__(self) -> str:
        of = f" of {', '.join(self.of)}" if self.of else ""
        return f"{self.permission} {self.action} {', '.join(self.names)}{scope_text(self.to, self.when)}{of}"


def _with_condition(given: dict[str, Any], when: str) -> PermissionRule:
    return PermissionRule(**{**given, "when": compile_condition(when) if when else None})


class LimitRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that limits how much each tenant uses in a window of time."""

    amounts: Mapping[str, int]
    """The limit for each unit: ``runs``, or a unit of the ledger of budgets."""
    per: WindowLength
    to: Subjects = EVERYBODY
    when: Condition | None = None
    version: str = ""

    def applies(self, asked: Asked) -> bool:
        """Return whether the limit applies to this. A condition that cannot be evaluated counts as met."""
        return self.to.include(asked) and is_met(self.when, asked, if_failed=True)

    @property
    def spending(self) -> dict[str, int]:
        """What calls may spend, without the number of runs."""
        return {unit: amount for unit, amount in self.amounts.items() if unit != RUNS}

    @property
    def currency(self) -> str:
        """The currency of the money that it limits; empty if it limits none."""
        return currency_of(self.amounts)

    @property
    def key(self) -> str:
        """The name of what the limit counts. It stays the same when only the amounts change."""
        return f"{self.per}{scope_text(self.to, self.when)}"

    def __str__(self) -> str:
        amounts = ", ".join(
            pluralize(amount, "run") if unit == RUNS else amount_text(unit, amount)
            for unit, amount in self.amounts.items()
        )
        return f"limit {amounts} per {self.per}{scope_text(self.to, self.when)}"


def is_met(when: Condition | None, asked: Asked, *, if_failed: bool) -> bool:
    """Evaluate the condition of a rule. ``if_failed`` is returned if it cannot be evaluated."""
    if when is None:
        return True
    try:
        return when.evaluate(bindings_of(asked)).value
    except EvaluationFailed:
        return if_failed


def bindings_of(asked: Asked) -> dict[str, Any]:
    """Return the values that conditions can use, by name."""
    return {
        "args": asked.args,
        "name": asked.name,
        "agent": asked.agent,
        "workflow": asked.workflow,
        "tenant": asked.tenant,
        "attributes": asked.attributes,
        "spent": asked.spent,
        "agents": asked.agents,
    }


def scope_text(to: Subjects, when: Condition | None) -> str:
    """Return the conditions of a rule as text."""
    subjects = f" to {to}" if to.patterns else ""
    return f"{subjects} when {when.text}" if when is not None else subjects
