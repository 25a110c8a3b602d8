"""What the policy of this host says about the calls of a run. Verdicts are recorded: replay asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.policy.verdicts import Action, Asked, PolicyVerdict
from weft.agents.spec import AgentSpec
from weft.authoring.agents.approval import APPROVE, ThroughCall, WantedCall, ask_approval
from weft.authoring.agents.operations import is_next_settled, is_recorded, loop_scope, recorded_value
from weft.authoring.agents.reply import Usage
from weft.authoring.results import Answer
from weft.core.unstorable import to_encodable
from weft.errors import NotAllowed
from weft.runtime.policy import DENIED, asked_in, denied_error
from weft.runtime.service import RunService

POLICY = "policy"
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}

_encode = msgspec.json.Encoder().encode
_read_verdict = msgspec.json.Decoder(PolicyVerdict).decode


class RunPolicy:
    """The policy for one run of an agent. A new version holds from the next call on."""

    def __init__(self, service: Callable[[], RunService], agent: str) -> None:
        """``service`` is asked for only where something is new: replay may have none."""
        self._service = service
        self.agent = agent
        self.usage: Usage | None = Usage()
        """What the run has used before the call that is asked about; None if nobody knows."""

    async def tool_verdict(
        self, tool: str, arguments: dict[str, object], through: Sequence[ThroughCall] = ()
    ) -> PolicyVerdict:
        """Return what the policy said at this place about a call of a tool, or ask it now and record that.

        ``through``: the calls that this one is inside of. The strictest verdict counts.
        """

        def ask() -> PolicyVerdict:
            asked = [(tool, arguments), *through]
            return _strictest(
                [self._ask_about_tool(one, msgspec.to_builtins(given, enc_hook=to_encodable)) for one, given in asked]
            )

        return await self._recorded(ask, tool)

    async def patch_verdict(self, tool: str, workflow: str, names: Sequence[str]) -> PolicyVerdict:
        """Return what the policy said about the operations of a patch: the strictest of all verdicts."""

        def ask() -> PolicyVerdict:
            asked = msgspec.structs.replace(self._asked("patch", "", {}), workflow=workflow)
            policy, default = self._service().policy, default_for("patch", agent=self.agent)
            found = [policy.verdict(msgspec.structs.replace(asked, name=name), default) for name in names]
            found.append(self._ask_about_tool(tool, {}))
            return _strictest(found)

        return await self._recorded(ask, tool)

    async def _recorded(self, ask: Callable[[], PolicyVerdict], tool: str = "") -> PolicyVerdict:
        is_new = not is_recorded(POLICY)
        fresh = _encode(ask()) if is_new else None
        verdict = _read_verdict((await recorded_value(POLICY, "policy", fresh)).raw)
        if tool and is_new and verdict.permission == "deny":
            self.count_refusal(tool)
        return verdict

    async def approval(
        self, spec: AgentSpec, call: WantedCall, verdict: PolicyVerdict, more: Mapping[str, Any] | None = None
    ) -> Answer[Any]:
        """Ask people whether a call may be performed, and count a no when it is given."""
        is_new = not is_next_settled(APPROVE)
        answer = await ask_approval(spec, call, verdict, more)
        if is_new and not answer.approved:
            self.count_refusal(call.tool.name)
        return answer

    def _ask_about_tool(self, tool: str, arguments: dict[str, object]) -> PolicyVerdict:
        default = default_for("tool", agent=self.agent)
        return self._service().policy.verdict(self._asked("tool", tool, arguments), default)

    def _asked(self, action: Action, name: str, arguments: dict[str, object]) -> Asked:
        state = loop_scope().driver.machine.state
        asked = asked_in(state, action=action, name=name)
        return msgspec.structs.replace(asked, agent=self.agent, args=arguments, spent=_spent_for_conditions(self.usage))

    def count_refusal(self, tool: str) -> None:
        """Count a call that the policy or a person refused just now."""
        work = self._service().work
        if work is not None:
            work.tools.refuse(tool)

    def call_check(self, model: str, currency: str) -> Callable[[], None]:
        """Return a function that raises NotAllowed if a model may not be asked now. It is called where it is asked.

        ``currency`` is that of its prices, if it has any.
        """
        run, asked, has_budget = self._asked("workflow", "", {}), self._asked("model", model, {}), self._has_budget()

        def check() -> None:
            self._require_budget(run, has_budget=has_budget)
            verdict = self._judge_model(asked, currency)
            if verdict.permission != "allow":
                raise denied_error(asked, verdict)

        return check

    def check_budget(self) -> None:
        """Raise NotAllowed if the policy requires a budget, and neither this run nor one above it has one."""
        self._require_budget(self._asked("workflow", "", {}), has_budget=self._has_budget())

    def _has_budget(self) -> bool:
        return bool(loop_scope().driver.machine.state.scopes)

    def _require_budget(self, asked: Asked, *, has_budget: bool) -> None:
        rules = self._service().policy.rules
        if rules is not None and not has_budget and rules.requires_budget(asked):
            raise NotAllowed(
                f"The agent {self.agent} is not permitted: the policy requires a budget, and it has none.",
                hint="Give the agent or its workflow one: budget=weft.Budget(calls=20).",
                code=DENIED,
            )

    async def refusal(self, alias: str, currency: str) -> NotAllowed | None:
        """Return why a model may not be asked; None if it may. ``currency`` is that of its prices, if it has any."""
        verdict = await self._recorded(lambda: self._judge_model(self._asked("model", alias, {}), currency))
        if verdict.permission == "allow":
            return None
        return denied_error(Asked(action="model", name=alias, agent=self.agent), verdict)

    def _judge_model(self, asked: Asked, currency: str) -> PolicyVerdict:
        """Ask about a model. What it costs must be countable where the policy limits money."""
        policy = self._service().policy
        verdict, rules = policy.verdict(asked, default_for("model", agent=self.agent)), policy.rules
        for rule in rules.limits_of(asked) if rules is not None else ():
            if verdict.permission != "deny" and rule.currency and rule.currency != currency:
                why = f"{rule}, and the model has no prices in {rule.currency}"
                return PolicyVerdict(permission="deny", rule=why, version=rule.version)
        return verdict


def _strictest(found: Sequence[PolicyVerdict]) -> PolicyVerdict:
    """Return the strictest of some verdicts, with all who are to be asked."""
    worst = max(found, key=lambda one: _STRICTNESS[one.permission])
    of = tuple(dict.fromkeys(name for one in found if one.permission == "ask" for name in one.of))
    return msgspec.structs.replace(worst, of=of)


def _spent_for_conditions(usage: Usage | None) -> dict[str, float]:
    """Return what was used as conditions see it. One about what is not known fails, such as money without prices."""
    if usage is None:
        return {}
    found: dict[str, float] = {"tokens": usage.input + usage.output, "calls": usage.calls, "tools": usage.tools}
    return found if usage.money is None and usage.calls else {**found, "money": float(usage.money or 0)}
