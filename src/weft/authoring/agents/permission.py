"""What the policy of this host says about the calls of a run. Verdicts are recorded: replay asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.policy.verdicts import Action, Asked, PolicyVerdict
from weft.authoring.agents.approval import TIMEOUT_MS
from weft.authoring.agents.operations import QuestionOrder, ask_people, here, is_recorded, recorded_value
from weft.authoring.agents.reply import Usage
from weft.core.unstorable import to_json
from weft.errors import NotAllowed
from weft.runtime.policy import DENIED, asked_for, denied
from weft.runtime.service import RunService

POLICY = "policy"
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}

_encode = msgspec.json.Encoder().encode
_read_verdict = msgspec.json.Decoder(PolicyVerdict).decode


class RunPolicy:
    """The policy for one run of an agent. A new version holds from the next call on."""

    def __init__(self, service: Callable[[], RunService], agent: str, approvers: tuple[str, ...]) -> None:
        """``service`` is asked for only where something is new: replay may have none."""
        self._service = service
        self.agent = agent
        self._approvers = approvers
        self.usage = Usage()
        """What the run has used before the call that is asked about."""

    async def verdict(self, action: Action, name: str, arguments: dict[str, object] | None = None) -> PolicyVerdict:
        """Return what the policy said at this place, or ask it now and record that."""
        return await self._recorded(
            lambda: self._ask(action, name, msgspec.to_builtins(arguments or {}, enc_hook=to_json))
        )

    async def patch_verdict(self, tool: str, workflow: str, names: Sequence[str]) -> PolicyVerdict:
        """Return what the policy said about the operations of a patch: the strictest of all verdicts."""

        def ask() -> PolicyVerdict:
            asked = msgspec.structs.replace(self._asked("patch", "", {}), workflow=workflow)
            policy, default = self._service().policy, default_for("patch", agent=self.agent)
            found = [policy.verdict(msgspec.structs.replace(asked, name=name), default) for name in names]
            found.append(self._ask("tool", tool, {}))
            worst = max(found, key=lambda one: _STRICTNESS[one.permission])
            of = tuple(dict.fromkeys(name for one in found if one.permission == "ask" for name in one.of))
            return msgspec.structs.replace(worst, of=of)

        return await self._recorded(ask)

    async def _recorded(self, ask: Callable[[], PolicyVerdict]) -> PolicyVerdict:
        fresh = None if is_recorded(POLICY) else _encode(ask())
        return _read_verdict((await recorded_value(POLICY, "policy", fresh)).raw)

    def _ask(self, action: Action, name: str, arguments: dict[str, object]) -> PolicyVerdict:
        default = default_for(action, agent=self.agent)
        return self._service().policy.verdict(self._asked(action, name, arguments), default)

    def _asked(self, action: Action, name: str, arguments: dict[str, object]) -> Asked:
        state = here().driver.machine.state
        asked = asked_for(state.run_id, state.workflow, state.attributes, action=action, name=name)
        return msgspec.structs.replace(asked, agent=self.agent, args=arguments, spent=_spent(self.usage))

    def check_budget(self) -> None:
        """Raise NotAllowed if the policy requires a budget, and neither this run nor one above it has one."""
        rules, state = self._service().policy.rules, here().driver.machine.state
        if rules is None or state.scopes:
            return
        asked = self._asked("workflow", state.workflow, {})
        if rules.requires_budget(asked):
            raise NotAllowed(
                f"The agent {self.agent} is not permitted: the policy requires a budget, and it has none.",
                hint="Give it one: app.agent(..., budget=weft.Budget(calls=20)).",
                code=DENIED,
            )

    async def refusal(self, alias: str, currency: str) -> NotAllowed | None:
        """Return why a model may not be asked; None if it may. ``currency`` is that of its prices, if it has any."""
        verdict = await self._recorded(lambda: self._ask_model(alias, currency))
        if verdict.permission == "allow" or (verdict.permission == "ask" and await self._is_approved(alias, verdict)):
            return None
        return denied(Asked(action="model", name=alias, agent=self.agent), verdict)

    def _ask_model(self, alias: str, currency: str) -> PolicyVerdict:
        """Ask about a model. What it costs must be countable where the policy limits money."""
        verdict, rules = self._ask("model", alias, {}), self._service().policy.rules
        for rule in rules.limits_of(self._asked("model", alias, {})) if rules is not None else ():
            if verdict.permission != "deny" and rule.currency and rule.currency != currency:
                why = f"{rule}, and the model has no prices in {rule.currency}"
                return PolicyVerdict(permission="deny", rule=why, version=rule.version)
        return verdict

    async def _is_approved(self, alias: str, verdict: PolicyVerdict) -> bool:
        answer = await ask_people(
            QuestionOrder(
                place="approve",
                title=f"{self.agent} wants to ask the model {alias}",
                about={"agent": self.agent, "model": alias, "rule": verdict.rule},
                of=verdict.of or self._approvers,
                timeout_ms=TIMEOUT_MS,
            )
        )
        return answer.approved


def _spent(usage: Usage) -> dict[str, float]:
    """Return what was used as conditions see it. Without prices there is no money, and a condition about it fails."""
    found: dict[str, float] = {"tokens": usage.input + usage.output, "calls": usage.calls, "tools": usage.tools}
    return found if usage.money is None and usage.calls else {**found, "money": float(usage.money or 0)}
