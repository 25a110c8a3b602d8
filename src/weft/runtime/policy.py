"""The policy that holds on this host: that of its program, together with the newest one in the store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from weft.agents.policy.verdicts import Action, Asked, Permission, PolicyVerdict
from weft.core.event_parts import Parent
from weft.core.ids import tenant_prefix
from weft.core.run.children import caller_of
from weft.core.run.questions import STARTED_BY, STARTED_ROLES
from weft.core.run.state import State
from weft.errors import BadPolicy, NotAllowed
from weft.ports.policies import PolicyVersions

if TYPE_CHECKING:  # reading conditions is slow to import, and only for programs with a policy
    from weft.agents.policy.policy_rules import PolicyRules

log = logging.getLogger("weft")

DENIED = "policy.denied"
_BODIES = ("host", "secret")


class CurrentPolicy:
    """The policy as it stands. Without one, every answer is the default."""

    def __init__(self, versions: PolicyVersions, own: PolicyRules | None = None) -> None:
        """``own`` is the policy of the program."""
        self._versions = versions
        self.own = own
        self.rules: PolicyRules | None = None
        """The rules of both; None if there is no policy at all."""
        self.checks_steps = self.checks_bodies = False
        """Whether any rule is about steps, and about what bodies do. Every task asks this."""
        self.limits_spending = False
        """Whether any rule limits what calls spend in a window of time."""
        self.checks_starters = False
        """Whether any rule about what bodies do asks who started the run, or for its attributes."""
        self.version = 0
        """The number of the stored policy; 0 if there is none."""
        self._seen = 0
        if own is not None:
            self._use_rules(own)

    def _use_rules(self, rules: PolicyRules) -> None:
        self.rules = rules
        self.checks_steps = rules.governs("step")
        self.checks_bodies = rules.governs("host") or rules.governs("secret")
        self.limits_spending = any(rule.spending for rule in rules.limits)
        self.checks_starters = any(rule.action in _BODIES and rule.needs_run for rule in rules.rules)

    async def refresh(self) -> None:
        """Read the policy in the store, if there is a newer one. One that cannot be read changes nothing.

        Raises BadPolicy if it cannot be read and there was none before.
        """
        newest = await self._versions.newest()
        if newest == self._seen:
            return
        stored = await self._versions.get(newest)
        if stored is None:
            return
        from weft.agents.policy.load import parse_policy  # noqa: PLC0415 - see above
        from weft.agents.policy.policy_rules import join_policies  # noqa: PLC0415

        try:
            read = parse_policy(stored.text, f"version {newest} of the policy", version=str(newest)).policy
        except BadPolicy:
            if not self.version:
                raise
            log.exception("weft: version %d of the policy cannot be read; version %d still holds", newest, self.version)
            self._seen = newest
            return
        self._use_rules(join_policies(self.own, read) if self.own is not None else read)
        self.version = self._seen = newest

    def verdict(self, asked: Asked, default: Permission) -> PolicyVerdict:
        """Say whether this is permitted."""
        rules = self.rules
        return rules.verdict(asked, default) if rules is not None else PolicyVerdict(permission=default)


class FixedPolicy:
    """The policy as it stood at some moment."""

    def __init__(self, rules: PolicyRules | None) -> None:
        self.rules = rules

    def verdict(self, asked: Asked, default: Permission) -> PolicyVerdict:
        """Say whether this is permitted."""
        return self.rules.verdict(asked, default) if self.rules is not None else PolicyVerdict(permission=default)


def tenant_of(run_id: str) -> str:
    """Return the tenant of a run; empty for runs of the operator."""
    return tenant_prefix(run_id)[1:-1]


def asked_for(run_id: str, workflow: str, attributes: Mapping[str, Any], *, action: Action, name: str) -> Asked:
    """Return a question about what a run wants to do. It is asked in the name of the person who started the run."""
    return Asked(
        action=action,
        name=name,
        workflow=workflow,
        tenant=tenant_of(run_id),
        user=str(attributes.get(STARTED_BY, "")),
        roles=tuple(attributes.get(STARTED_ROLES, ())),
        attributes=attributes,
    )


def asked_in(state: State, *, action: Action, name: str) -> Asked:
    """Return a question about what a run wants to do. For an agent it names the workflow and the node that asked it."""
    asked = asked_for(state.run_id, state.workflow, state.attributes, action=action, name=name)
    return with_asker(asked, caller_of(state))


def with_asker(asked: Asked, caller: Parent | None) -> Asked:
    """Return a question of an agent with the workflow and the node that asked the agent."""
    return asked if caller is None else msgspec.structs.replace(asked, caller=caller.workflow, node=caller.node)


def node_at(location: str) -> str:
    """Return the node that a task belongs to."""
    return location.partition("/")[0].partition("#")[0]


def denied_error(asked: Asked, verdict: PolicyVerdict) -> NotAllowed:
    """Return the error for something that the policy does not permit."""
    who = f" of {asked.agent}" if asked.agent else ""
    why = f"the policy says: {verdict.rule}" if verdict.rule else "no rule of the policy allows it"
    return NotAllowed(
        f"The {asked.action} {asked.name}{who} is not permitted: {why}.",
        hint="weft policy show prints the rules. An administrator can change them: weft policy set FILE",
        code=DENIED,
    )
