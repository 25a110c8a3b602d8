"""Work out what a call of one of Weft's own tools does, before a person is asked or anything is performed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.agents.toolbox.definitions import CALL, DELEGATE, EXECUTE, INTERPRETER, READ, STORED
from weft.agents.tools.spec import ToolSpec, Touch, model_tool_name
from weft.core.events import Effect
from weft.errors import BadValue
from weft.pipelines.pipeline import read_pipeline
from weft.steps.task import TOOL

LAST: Final = "last"
"""Stands for the newest result of the run."""
_TARGET: Final = {name: f"{TOOL}{name}" for name in (EXECUTE, READ, CALL, DELEGATE)}


_TOUCHES: Final[Mapping[Effect, tuple[Touch, ...]]] = {
    "pure": (),
    "idempotent": ("untrusted",),
    "irreversible": ("untrusted", "outside"),
}
"""What a pipeline touches, by its effect: requests bring in untrusted content, and a POST also sends data out."""


class InnerCall(msgspec.Struct):
    """The call inside a call of ``call_tool`` or ``delegate_to_agent``."""

    name: str
    arguments: dict[str, Any] = {}
    is_delegated: bool = False


def inner_call(tool: ToolSpec, arguments: dict[str, Any]) -> InnerCall | None:
    """Return the call inside a call of ``call_tool`` or ``delegate_to_agent``; None for other tools."""
    if tool.target == _TARGET[CALL]:
        return msgspec.convert(arguments, InnerCall)
    if tool.target == _TARGET[DELEGATE]:
        return InnerCall(arguments["agent_type"], arguments.get("inputs", {}), is_delegated=True)
    return None


def unoffered_tool(inner: InnerCall, offered: ToolSpec | None) -> ToolSpec | None:
    """Return the tool of an inner call if it is not offered but may be called; None if it is offered, or unknown."""
    if inner.is_delegated:
        return _INTERPRETER if inner.name == INTERPRETER and offered is None else None
    return stored_tool(inner.name) if offered is None else None


_INTERPRETER = ToolSpec(
    name=INTERPRETER,
    effect="pure",
    kind="builtin",
    target=f"{TOOL}{INTERPRETER}",
    schema={
        "type": "object",
        "properties": {"code": {"type": "string"}, "data": {}},
        "required": ["code"],
        "additionalProperties": False,
    },
)


def stored_tool(name: str) -> ToolSpec:
    """Return what is known about a tool that is only in the store: it may fetch data. Its step checks the arguments."""
    return ToolSpec(
        name=model_tool_name(name),
        effect="idempotent",
        kind="builtin",
        target=STORED,
        given={"name": name},
        touches=_TOUCHES["idempotent"],
    )


def checked_call(tool: ToolSpec, arguments: dict[str, Any], last: str) -> tuple[ToolSpec, dict[str, Any]]:
    """Return the tool with the effect of this call, and the arguments with ``last`` replaced by the newest result.

    Raises:
        PipelineFailed: the pipeline of the call is invalid.
        BadValue: there is no result yet.
    """
    if tool.kind != "builtin" or not tool.target.startswith(TOOL):
        return tool, arguments
    found = {
        name: _resolved(value, last) if name in ("input_ref", "ref") else value for name, value in arguments.items()
    }
    if tool.target != _TARGET[EXECUTE]:
        return tool, found
    pipeline = read_pipeline(found.get("pipeline"))
    steps = [
        {name: _resolved(value, last) if name in ("left", "right") else value for name, value in step.items()}
        for step in pipeline.source
    ]
    touches = tuple(dict.fromkeys((*tool.touches, *_TOUCHES[pipeline.effect])))
    # A tool that the program declares as irreversible stays irreversible.
    effect = tool.effect if tool.effect == "irreversible" else pipeline.effect
    return msgspec.structs.replace(tool, effect=effect, touches=touches), {**found, "pipeline": steps}


def _resolved(value: Any, last: str) -> Any:
    if value != LAST:
        return value
    if not last:
        raise BadValue("There is no result yet.", hint="Run a pipeline first, or give the rows.")
    return last


def split_result(raw: bytes) -> tuple[bytes, str]:
    """Return a result as a model sees it, and the reference to the stored result; empty if none is stored."""
    if b'"held":{"$weft":"blob"' not in raw:
        return raw, ""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict) or "held" not in value:
        return raw, ""
    del value["held"]
    return msgspec.json.encode(value), str(value.get("result_ref", ""))
