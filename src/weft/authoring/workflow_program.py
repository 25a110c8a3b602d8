"""A code workflow as a host runs it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from weft.authoring.context import Context
from weft.authoring.runnable import Invocation
from weft.authoring.workflows import Workflow
from weft.runtime.run.driver import CodeDriver
from weft.runtime.service import RunService
from weft.runtime.words import by_signature


class WorkflowProgram:
    """The program of the runs of one workflow."""

    def __init__(self, workflow: Workflow[Any, Any], context: Context) -> None:
        self.name = workflow.name
        self.version = workflow.version
        self._workflow = workflow
        self._context = context

    def read(self, name: str, text: str) -> Any:
        """Read an argument that was typed as text."""
        return by_signature(self._workflow.signature)(name, text)

    def defaults(self, given: bytes | None) -> bytes:
        return self._workflow.signature.defaults(given)

    def begin(self, driver: CodeDriver, given: bytes, defaults: bytes) -> Coroutine[Any, Any, Any]:
        arguments = self._workflow.signature.unpack(given, defaults, what=self.name)
        if self._workflow.signature.takes_context:
            return self._workflow.fn(self._context, **arguments)  # type: ignore[no-any-return]
        return self._workflow.fn(**arguments)  # type: ignore[no-any-return]

    def invocation(self, call: Any, given: Mapping[str, Any] | None) -> Invocation:
        return self._workflow.group.root().invocation(call, given)

    def achievement(self, goals: Sequence[Any], given: Mapping[str, Any]) -> Invocation:
        """Return what ``ctx.achieve`` starts: a run of goals without a name."""
        return self._workflow.group.root().achievement(goals, given)

    def service(self) -> RunService:
        """Return the way to other runs, through the app that hosts this one."""
        return self._workflow.group.root().service

    def encode(self, value: Any) -> bytes:
        return self._workflow.signature.result.encode(value, what=f"{self.name} returned")
