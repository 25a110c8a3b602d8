"""What is wrong with a document of steps: the codes of goals, the places of its author, one error for all of it."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.findings import PROBLEMS_MAX, At, Finding, Problem, Problems
from weft.core.goal.checks import BadStep
from weft.graphs.text import Text


class StepProblems(Problems):
    """Collects what is wrong with steps, so that one mistake does not hide the next."""

    def add(self, code: str, at: At, message: str, suggestion: str = "") -> None:
        super().add(code if "." in code else f"goal.{code}", at, message, suggestion)


class Source:
    """A document with what is known about its places."""

    def __init__(self, text: Text, file: str = "") -> None:
        self.text = text
        self.file = file

    def finding(self, problem: Problem) -> Finding:
        """A problem with a path that people can read, and a line."""
        line = self.text.line(problem.at) if self.file else 0
        return Finding(problem.code, problem.message, self._path(problem.at), line, self.file, problem.suggestion)

    def _path(self, at: At) -> str:
        text = ""
        for depth, key in enumerate(at):
            shown = self._step_name(key) if depth == 1 and at[0] == "steps" and isinstance(key, int) else key
            if isinstance(shown, int):
                text += f"[{shown}]"
            else:
                text += f".{shown}" if text else shown
        return text

    def _step_name(self, index: int) -> str | int:
        step = self.text.data["steps"][index]
        found = step.get("id") if isinstance(step, dict) else None
        return found if isinstance(found, str) and found else index


def refusal(findings: Sequence[Finding], *, name: str) -> BadStep:
    """The error for a document that cannot be registered; `context["findings"]` has all that is wrong."""
    if len(findings) == 1:
        return BadStep(str(findings[0]), code=findings[0].code, findings=list(findings))
    count = f"at least {len(findings)}" if len(findings) >= PROBLEMS_MAX else len(findings)
    lines = "".join(f"\n  {each}" for each in findings)
    codes = {finding.code for finding in findings}
    code = findings[0].code if len(codes) == 1 else BadStep.code
    return BadStep(f"{name} has {count} problems:{lines}", code=code, findings=list(findings))
