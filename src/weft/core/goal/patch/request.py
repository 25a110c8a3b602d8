"""What a patch of a goal run asks for, and what the run would do."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.goal_events import GoalChange


class GoalRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A patch of a goal run.

    ``registered`` is the host's catalogue. It is used only with ``catalogue="now"``.
    """

    given: dict[str, Raw] = {}
    add: list[str] = []
    """Goals to add."""
    remove: list[str] = []
    """Goals to remove."""
    steps: dict[str, StepDef] = {}
    catalogue: Literal["plan", "now"] = "plan"
    replan: bool = False
    ends: bool = False
    """Whether the patch may complete the run."""
    registered: list[StepDef] = []

    @property
    def says_nothing(self) -> bool:
        asks = self.given or self.add or self.remove or self.steps or self.replan
        return not asks and self.catalogue == "plan"


class GoalConsequences(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a patch of a goal run does at once, as lists of steps."""

    gone: list[str] = []
    """Steps that leave the plan."""
    added: list[str] = []
    taken_up: list[str] = []
    """Steps that were skipped and are pending again."""
    dropped: list[str] = []
    """Active steps that nothing needs any more."""
    starts: list[str] = []
    facts: dict[str, Raw] = {}
    """The facts that the patch gives or changes."""
    ends: bool = False
    """Whether the run completes."""


class GoalJudgement(msgspec.Struct, frozen=True):
    """The result of judging a patch: the change with its consequences, or findings that refuse it."""

    findings: list[Finding]
    change: GoalChange | None = None
    does: GoalConsequences = GoalConsequences()
