"""Check tasks against the policy: whether a step is handed out, and what its body may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.agents.policy.verdicts import Asked
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.event_parts import Parent
from weft.core.ids import RunUid
from weft.core.run.state import State
from weft.core.secrets import references_in
from weft.errors import NotAllowed
from weft.ports.store import Directory
from weft.runtime.policy import CurrentPolicy, FixedPolicy, asked_for, asked_in, denied_error, node_at, with_asker
from weft.steps.task import MODEL

BUILT_IN = "weft."
"""How the names of built-in steps begin. They are permitted by what they do: models, tools, hosts."""


class TaskPermits:
    """What the body of one task may do."""

    __slots__ = ("_asked", "_bound", "_is_built_in", "_is_own_code", "_policy")

    def __init__(
        self, policy: CurrentPolicy | FixedPolicy, asked: Asked, *, is_built_in: bool = False, is_own_code: bool = False
    ) -> None:
        """``is_own_code``: the body is a function in the code of a workflow, which may do what no rule denies."""
        self._policy = policy
        self._is_own_code = is_own_code
        self._asked = asked
        self._is_built_in = is_built_in
        self._bound: frozenset[str] = frozenset()

    def for_process(self) -> TaskPermits:
        """Return what the body may do, as another process can take it: with the rules as they are now."""
        rules = self._policy.rules
        fixed = FixedPolicy(rules.about("host", "secret") if rules is not None else None)
        made = TaskPermits(fixed, self._asked, is_built_in=self._is_built_in, is_own_code=self._is_own_code)
        made._bound = self._bound
        return made

    def bind(self, given: bytes) -> None:
        """Permit the secrets that the author gave to the task with its arguments."""
        if self._asked.agent:
            self._bound = references_in(given)

    def check(self, action: Literal["host", "secret"], name: str) -> None:
        """Raise NotAllowed if the policy does not permit this."""
        asked = msgspec.structs.replace(self._asked, action=action, name=name)
        is_open = (
            not asked.agent or self._is_own_code or (action == "secret" and (self._is_built_in or name in self._bound))
        )
        verdict = self._policy.verdict(asked, "allow" if is_open else "deny")
        if verdict.permission != "allow":
            raise denied_error(asked, verdict)


class TaskPolicy:
    """Applies the policy of a host to the tasks that it hands out."""

    def __init__(self, policy: CurrentPolicy, directory: Directory) -> None:
        self.current = policy
        self._directory = directory

    def refusal(self, state: State, effect: PerformTask) -> NotAllowed | None:
        """Return why a step is not handed out; None if it is permitted. Called only if the policy is about steps."""
        if effect.step.startswith(BUILT_IN):
            return None
        asked = asked_in(state, action="step", name=effect.step)
        asked = msgspec.structs.replace(
            asked,
            agent=effect.policy.agent,
            node=asked.node or node_at(effect.location),
            args=_task_arguments(bytes(effect.input)),
        )
        verdict = self.current.verdict(asked, "allow")
        return denied_error(asked, verdict) if verdict.permission != "allow" else None

    def check_child(self, state: State, workflow: str, given: Raw) -> None:
        """Raise NotAllowed if a run may not start a child run of this workflow."""
        rules = self.current.rules
        if rules is None or workflow.startswith(BUILT_IN) or not rules.governs("workflow"):
            return
        asked = asked_in(state, action="workflow", name=workflow)
        asked = msgspec.structs.replace(asked, args=_task_arguments(bytes(given)))
        verdict = rules.verdict(asked, "allow")
        if verdict.permission == "deny":
            raise denied_error(asked, verdict)

    async def permits(
        self, uid: RunUid, run_id: str, workflow: str, caller: Parent | None, effect: PerformTask
    ) -> TaskPermits:
        """Return what the body of a task may do. Only tools of agents and tasks under a policy need to ask."""
        attributes: Mapping[str, Any] = {}
        if self.current.checks_starters:
            row = await self._directory.row(uid)
            attributes = row.attributes if row is not None else {}
        agent = effect.policy.agent if effect.step != MODEL else ""  # its address is that of the program, not of data
        asked = with_asker(asked_for(run_id, workflow, attributes, action="host", name=""), caller)
        asked = msgspec.structs.replace(asked, agent=agent, node=asked.node or node_at(effect.location))
        is_built_in = effect.step.startswith(BUILT_IN)
        return TaskPermits(self.current, asked, is_built_in=is_built_in, is_own_code=effect.inline)


def _task_arguments(raw: bytes) -> Mapping[str, Any]:
    """Return the arguments of a task, as far as they are in the log. A condition about others counts as met."""
    if values.is_ref(raw):
        return {}
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}
