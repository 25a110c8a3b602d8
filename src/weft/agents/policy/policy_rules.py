"""The rules of a policy, and the verdicts that follow from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from weft.agents.policy.rules import LimitRule, PermissionRule
from weft.agents.policy.subjects import Subjects
from weft.agents.policy.verdicts import Action, Asked, Permission, PolicyVerdict


class PolicyRules:
    """The rules of a policy. Their order does not matter."""

    def __init__(
        self, rules: Sequence[PermissionRule], limits: Sequence[LimitRule] = (), budgets: Sequence[Subjects] = ()
    ) -> None:
        """``budgets`` says who needs a budget."""
        self.rules = tuple(rules)
        self.limits = tuple(limits)
        self.budgets = tuple(budgets)
        self._by_action: dict[Action, list[PermissionRule]] = defaultdict(list)
        for rule in rules:
            self._by_action[rule.action].append(rule)
        self._by_action.default_factory = None

    def governs(self, action: Action) -> bool:
        """Return whether any rule is about this action."""
        return action in self._by_action

    def verdict(self, asked: Asked, default: Permission) -> PolicyVerdict:
        """Say whether this is permitted. Deny beats ask, ask beats allow; without a rule it is the default."""
        asks: list[PermissionRule] = []
        allows: PermissionRule | None = None
        for rule in self._by_action.get(asked.action, ()):
            if rule.permission == "ask":
                if rule.applies(asked):
                    asks.append(rule)
            elif rule.permission == "allow":
                if allows is None and rule.applies(asked):
                    allows = rule
            elif rule.applies(asked):
                return PolicyVerdict(permission="deny", rule=str(rule), version=rule.version)
        if asks:
            of = tuple(dict.fromkeys(name for rule in asks for name in rule.of))
            return PolicyVerdict(permission="ask", of=of, rule=str(asks[0]), version=asks[0].version)
        if allows is not None:
            return PolicyVerdict(permission="allow", rule=str(allows), version=allows.version)
        return PolicyVerdict(permission=default)

    def about(self, *actions: Action) -> PolicyRules:
        """Return the rules about these actions."""
        return PolicyRules([rule for rule in self.rules if rule.action in actions])

    def without_conditions_on(self, *names: str) -> PolicyRules:
        """Return the rules whose conditions use none of these names. They can be judged before the values are known."""
        unknown = set(names)
        return PolicyRules([rule for rule in self.rules if rule.when is None or not rule.when.names & unknown])

    def limits_of(self, asked: Asked) -> list[LimitRule]:
        """Return the limits that hold for whoever asks."""
        return [rule for rule in self.limits if rule.applies(asked)]

    def requires_budget(self, asked: Asked) -> bool:
        """Return whether whoever asks needs a budget."""
        return any(subjects.include(asked) for subjects in self.budgets)


NO_RULES = PolicyRules(())


def join_policies(*policies: PolicyRules) -> PolicyRules:
    """Return one policy with the rules of all these policies."""
    return PolicyRules(
        [rule for policy in policies for rule in policy.rules],
        [rule for policy in policies for rule in policy.limits],
        [subjects for policy in policies for subjects in policy.budgets],
    )
