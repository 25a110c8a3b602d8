"""Check tasks against the policy: whether a step is handed out, and what its body may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.agents.policy.verdicts import Asked
from weft.core import values
from weft.core.effects import PerformTask
from weft.core.ids import RunUid
from weft.core.run.state import State
from weft.core.secrets import references_in
from weft.errors import NotAllowed
from weft.ports.store import Directory
from weft.runtime.policy import CurrentPolicy, asked_for, denied
from weft.steps.task import MODEL

BUILT_IN = "weft."
"""How the names of built-in steps begin. They are permitted by what they do: models, tools, hosts."""


class TaskPermits:
    """What the body of one task may do."""

    __slots__ = ("_asked", "_bound", "_is_built_in", "_policy")

    def __init__(self, policy: CurrentPolicy, asked: Asked, *, is_built_in: bool) -> None:
        self._policy = policy
        self._asked = asked
        self._is_built_in = is_built_in
        self._bound: frozenset[str] = frozenset()

    def bind(self, given: bytes) -> None:
        """Permit the secrets that the author gave to the task with its arguments."""
        if self._asked.agent:
            self._bound = references_in(given)

    def check(self, action: Literal["host", "secret"], name: str) -> None:
        """Raise NotAllowed if the policy does not permit this."""
        asked = msgspec.structs.replace(self._asked, action=action, name=name)
        is_open = not asked.agent or (action == "secret" and (self._is_built_in or name in self._bound))
        verdict = self._policy.verdict(asked, "allow" if is_open else "deny")
        if verdict.permission != "allow":
            raise denied(asked, verdict)


class TaskPolicy:
    """Applies the policy of a host to the tasks that it hands out."""

    def __init__(self, policy: CurrentPolicy, directory: Directory) -> None:
        self.current = policy
        self._directory = directory

    def refusal(self, state: State, effect: PerformTask) -> NotAllowed | None:
        """Return why a step is not handed out; None if it is permitted. Called only if the policy is about steps."""
        if effect.step.startswith(BUILT_IN):
            return None
        asked = msgspec.structs.replace(
            asked_for(state.run_id, state.workflow, state.attributes, action="step", name=effect.step),
            agent=effect.policy.agent,
            node=effect.location.partition("/")[0].partition("#")[0],
            args=_arguments(bytes(effect.input)),
        )
        verdict = self.current.verdict(asked, "allow")
        return denied(asked, verdict) if verdict.permission != "allow" else None

    def check_child(self, state: State, workflow: str, given: Raw) -> None:
        """Raise NotAllowed if a run may not start a child run of this workflow."""
        rules = self.current.rules
        if rules is None or workflow.startswith(BUILT_IN) or not rules.governs("workflow"):
            return
        asked = asked_for(state.run_id, state.workflow, state.attributes, action="workflow", name=workflow)
        asked = msgspec.structs.replace(asked, args=_arguments(bytes(given)))
        verdict = rules.verdict(asked, "allow")
        if verdict.permission == "deny":
            raise denied(asked, verdict)

    async def permits(self, uid: RunUid, run_id: str, workflow: str, effect: PerformTask) -> TaskPermits:
        """Return what the body of a task may do. Only tools of agents and tasks under a policy need to ask."""
        attributes: Mapping[str, Any] = {}
        if self.current.checks_starters:
            row = await self._directory.row(uid)
            attributes = row.attributes if row is not None else {}
        agent = effect.policy.agent if effect.step != MODEL else ""  # its address is that of the program, not of data
        asked = asked_for(run_id, workflow, attributes, action="host", name="")
        asked = msgspec.structs.replace(asked, agent=agent)
        return TaskPermits(self.current, asked, is_built_in=effect.step.startswith(BUILT_IN))


def _arguments(raw: bytes) -> Mapping[str, Any]:
    """Return the arguments of a task, as far as they are in the log. A condition about others counts as met."""
    if values.is_ref(raw):
        return {}
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}
