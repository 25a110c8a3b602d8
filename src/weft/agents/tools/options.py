"""What a program says about a tool that it offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from weft.agents.tools.spec import ToolSpec, Touch, make_tool
from weft.core.events import Effect
from weft.errors import BadValue

APPROVALS = ("irreversible", "always", "never")
"""When a call is approved by a person. Anything else is CEL over ``args``."""
ASK_PERSON = "ask_person"
_CHOICES_MAX = 20


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A step, workflow, agent or MCP server that an agent may call, with the rules about its calls."""

    of: Any
    name: str | None = None
    bind: Mapping[str, Any] = {}
    approve: str | None = None
    editable: bool = False
    effect: Effect | None = None
    touches: tuple[Touch, ...] = ()
    per_run: int | None = None
    on_error: Literal["tell", "fail"] = "tell"
    on_unknown: Literal["fail", "tell"] = "fail"

    def rules(self) -> dict[str, Any]:
        """Return the fields of a ``ToolSpec`` that do not depend on what the tool is."""
        changed: dict[str, Any] = {
            "bind": dict(self.bind),
            "approve": self.approve or "",
            "editable": self.editable,
            "touches": self.touches,
            "per_run": self.per_run,
            "on_error": self.on_error,
            "on_unknown": self.on_unknown,
        }
        if self.name is not None:
            changed["name"] = self.name
        if self.effect is not None:
            changed["effect"] = self.effect
        return changed


class PersonTool(msgspec.Struct, frozen=True, kw_only=True):
    """The tool ``ask_person``: the model asks a person, and the answer is its result."""

    of: tuple[str, ...] = ()
    timeout_ms: int

    def spec(self) -> ToolSpec:
        """Return the tool as runs know it."""
        return make_tool(
            ToolSpec(
                name=ASK_PERSON,
                description="Ask a person a question and wait for the answer. With choices, the person picks one.",
                schema={
                    "type": "object",
                    "properties": {
                        "question": {"type": "string", "minLength": 1},
                        "choices": {"type": "array", "items": {"type": "string"}, "maxItems": _CHOICES_MAX},
                    },
                    "required": ["question"],
                    "additionalProperties": False,
                },
                effect="pure",
                kind="person",
                of=self.of,
                timeout_ms=self.timeout_ms,
            )
        )


def check_approval(approve: str) -> str:
    """Return when calls are approved. Raises BadExpression if it is neither a word for it nor CEL."""
    if approve not in APPROVALS:
        from weft.conditions.expressions import compile_expression  # noqa: PLC0415 - few tools have a condition

        unknown = compile_expression(approve).names - {"args"}
        if unknown:
            words = ", ".join(APPROVALS)
            raise BadValue(
                f"approve={approve!r} reads {', '.join(sorted(unknown))}, which a condition does not have.",
                hint=f'Write one of {words}, or a condition over args: "args.cents > 5000".',
                code="value.bad_policy",
            )
    return approve
