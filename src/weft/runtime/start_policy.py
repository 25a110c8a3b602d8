"""Check starts against the policy: whether the workflow is permitted, and whether a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from weft.agents.policy.verdicts import Asked
from weft.core import commands as c
from weft.core.graph.model import AgentWork, GraphModel
from weft.core.ids import Millis
from weft.errors import LimitExceeded
from weft.ports.clock import Clock
from weft.ports.policies import PolicyVersions, WindowCount
from weft.runtime.policy import asked_for, denied_error
from weft.runtime.programs import AnyProgram, graph_program

if TYPE_CHECKING:  # only for programs with a policy
    from weft.agents.policy.policy_rules import PolicyRules

LIMIT = "policy.limit"


class StartPolicy:
    """Admits starts. What it counts is given back if no run came of it."""

    def __init__(
        self, counts: PolicyVersions, clock: Callable[[], Clock], program: Callable[[str, str], AnyProgram | None]
    ) -> None:
        self._counts = counts
        self._clock = clock
        self._program = program

    async def admit(self, start: c.StartRun, rules: PolicyRules) -> Sequence[WindowCount]:
        """Check a start, and count it. Returns what was counted.

        Raises NotAllowed if the workflow or something in it is denied, LimitExceeded if a limit is reached.
        """
        graph = self._graph_of(start)
        asked = _asked_for(start, graph)
        verdict = rules.verdict(asked, "allow")
        if verdict.permission == "deny":
            raise denied_error(asked, verdict)
        if graph is not None:
            from weft.agents.policy.graph_work import denied_work  # noqa: PLC0415 - see above

            for _, wanted, found in denied_work(graph, rules, asked):
                raise denied_error(wanted, found)
        return await self._count_start(rules, asked)

    async def give_back(self, counted: Sequence[WindowCount]) -> None:
        """Forget a start that made no run."""
        if counted:
            await self._counts.give_back(counted)

    def _graph_of(self, start: c.StartRun) -> GraphModel | None:
        program = graph_program(self._program(start.workflow, start.version))
        return program.graph if program is not None else None

    async def _count_start(self, rules: PolicyRules, asked: Asked) -> Sequence[WindowCount]:
        from weft.agents.policy.rules import RUNS  # noqa: PLC0415 - see above
        from weft.agents.policy.windows import window_at  # noqa: PLC0415

        now = self._clock().now_ms()
        counts: dict[str, WindowCount] = {}
        for rule in rules.limits_of(asked):
            if RUNS not in rule.amounts:
                continue
            window = window_at(rule.per, now)
            key = f"{RUNS} per {rule.key}"
            limit = min(rule.amounts[RUNS], counts[key].limit) if key in counts else rule.amounts[RUNS]
            counts[key] = WindowCount(
                tenant=asked.tenant,
                name=key,
                begins_at=Millis(window.begins_at),
                ends_at=Millis(window.ends_at),
                limit=limit,
            )
        if not counts:
            return ()
        full = await self._counts.take(list(counts.values()), now=Millis(now))
        if full is None:
            return list(counts.values())
        raise _limit_reached(asked, full, now)


def _asked_for(start: c.StartRun, graph: GraphModel | None) -> Asked:
    agents = sum(isinstance(node.work, AgentWork) for node in graph.nodes.values()) if graph is not None else 0
    asked = asked_for(start.run_id, start.workflow, start.attributes, action="workflow", name=start.workflow)
    return msgspec.structs.replace(asked, args=_start_arguments(bytes(start.input)), agents=agents)


def _start_arguments(raw: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(raw)
    return found if isinstance(found, dict) else {}


def _limit_reached(asked: Asked, full: WindowCount, now: int) -> LimitExceeded:
    seconds = max(1, -(-(full.ends_at - now) // 1000))
    who = f" of the tenant {asked.tenant}" if asked.tenant else ""
    return LimitExceeded(
        f"{asked.workflow} was not started: the policy allows {full.limit} {full.name}{who}.",
        hint=f"Start it again in {seconds} s.",
        code=LIMIT,
        retry_after=seconds,
    )
