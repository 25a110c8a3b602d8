"""What a call of one of Weft's own tools means, before anybody is asked and anything is performed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.agents.toolbox.definitions import CALL, DELEGATE, EXECUTE, INTERPRETER, READ, STORED
from weft.agents.tools.spec import ToolSpec, Touch, tool_name
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
"""What a pipeline is near: one with requests takes in words of strangers, one with POST also sends something."""


class BehindCall(msgspec.Struct):
    """A call that another tool passes on: ``call_tool``, or ``delegate_to_agent``."""

    name: str
    arguments: dict[str, Any] = {}
    is_delegated: bool = False


def behind_call(tool: ToolSpec, arguments: dict[str, Any]) -> BehindCall | None:
    """Return the call that a tool passes on; None for any other tool."""
    if tool.target == _TARGET[CALL]:
        return msgspec.convert(arguments, BehindCall)
    if tool.target == _TARGET[DELEGATE]:
        return BehindCall(arguments["agent_type"], arguments.get("inputs", {}), is_delegated=True)
    return None


def target_of(behind: BehindCall, offered: ToolSpec | None) -> ToolSpec | None:
    """Return the tool that is not offered itself, but may be called; None if it is offered, or unknown."""
    if behind.is_delegated:
        return _INTERPRETER if behind.name == INTERPRETER and offered is None else None
    return stored_tool(behind.name) if offered is None else None


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
    """Return what is known of a tool that only the store has. Its step checks the arguments."""
    return ToolSpec(name=tool_name(name), effect="idempotent", kind="builtin", target=STORED, given={"name": name})


def checked_call(tool: ToolSpec, arguments: dict[str, Any], last: str) -> tuple[ToolSpec, dict[str, Any]]:
    """Return the tool with the effect of this call, and the arguments without the word ``last``.

    Raises:
        PipelineFailed: the pipeline of a call is wrong.
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
    return msgspec.structs.replace(tool, effect=pipeline.effect, touches=touches), {**found, "pipeline": steps}


def _resolved(value: Any, last: str) -> Any:
    if value != LAST:
        return value
    if not last:
        raise BadValue("There is no result yet.", hint="Run a pipeline first, or give the rows.")
    return last


def split_result(raw: bytes) -> tuple[bytes, str]:
    """Return a result as a model sees it, and the reference to what it is about, if there is one."""
    if b'"held":{"$weft":"blob"' not in raw:
        return raw, ""
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict) or "held" not in value:
        return raw, ""
    del value["held"]
    return msgspec.json.encode(value), str(value.get("result_ref", ""))
