"""The reference of the Python API, written from signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import weft
import weft.testing

INTRODUCTION = """\
# Reference

Every public name of `weft` and `weft.testing`, with the first lines of its docstring; `help(weft.App)` prints it all.
What must be awaited begins with `await`. [code-workflows.md](code-workflows.md), [graphs.md](graphs.md) and
[goals.md](goals.md) show the names in use, [cli.md](cli.md) lists the commands, and [errors.md](errors.md) says what
to do about an error.
"""

SECTIONS = {
    "Apps and clients": ["App", "Group", "Client"],
    "Steps": ["Step", "Retry", "Duration", "Task", "task", "Secret"],
    "Code workflows": [
        *("Workflow", "Context", "context", "Call", "Message", "Answer", "Ok", "Err", "Winner"),
        *("Again", "Done", "Turn", "again", "done"),
    ],
    "Schedules": ["Schedules", "Schedule", "AddedSchedule", "NominalTime"],
    "Bulks": ["Bulk", "BulkResult", "RefusedRuns"],
    "Checks of open runs": ["LiveReport", "LiveGroup"],
    "Runs": ["Handle", "ChildHandle", "Event", "Explanation", "Failure"],
    "Graphs": ["Graph", "GraphNode", "Finding", "NodeType", "register_node_type"],
    "Goals": ["Goal", "Plan", "Facts", "Fact", "Each", "Const", "lua", "ale"],
}
"""Where each name of `weft` stands; errors have a table of their own."""

ALIASES = {
    "Call": "A call of a step or workflow that was not awaited yet: `charge(7)`. A coroutine that knows its arguments.",
    "Duration": 'A time span: seconds as a number, text such as `"5m"` or `"1h30m"`, or a `timedelta`.',
    "Turn": "What the body of `ctx.loop` returns: `Again` or `Done`.",
}

CONSTRUCTED = {
    *("App", "Group", "Client", "Retry", "Secret", "Graph", "NodeType", "Fact", "Each", "Const"),
    *("Again", "Done", "Ok", "Err", "World", "Rates"),
}
"""Classes that users make; of the others they are given objects."""

INTERNAL = {
    "App": "registered notices bind blob_content blobs catalogue host_only is_tolerant launch run_and_wait service",
    "Client": "service",
    "FaultyStore": "offset_ms inner log directory inboxes hosts blobs tasks definitions tags streams access memos open "
    "close url retention holds",
    "Goal": "style group version timeout_ms result plan_for given goals",
    "Graph": "style group version timeout_ms result plan_for given gives load loaded register refuse_unknown",
    "GraphNode": "graph",
    "Group": "registered",
    "Handle": "read",
    "Plan": "plan",
    "Step": "planning fn signature policy body raises undo_plan",
    "Workflow": "style group version timeout_ms result plan_for given fn signature gives",
}
"""Members without an underscore that only other parts of Weft use. A subclass inherits its list."""

LOOP = "SimLoop"
"""An asyncio event loop: its methods are those of asyncio."""


def reference_page() -> str:
    """Write the whole page."""
    parts = [INTRODUCTION]
    for title, names in SECTIONS.items():
        parts += [f"## {title}", "", *(line for name in names for line in entry(weft, name))]
    parts += ["## Errors", "", *errors()]
    parts += ["## Testing", "", *(line for name in weft.testing.__all__ for line in entry(weft.testing, name))]
    return "\n".join(parts)


def entry(module: ModuleType, name: str) -> Iterator[str]:
    """Describe one public name and its members."""
    thing = getattr(module, name)
    full = f"{module.__name__}.{name}"
    if name in ALIASES and module is weft:
        yield from (f"### `{full}`", "", ALIASES[name], "")
    elif not inspect.isclass(thing):
        yield from (f"### `{full}{signature(thing)}`", "", summary(thing), "")
    else:
        made = signature(thing) if name in CONSTRUCTED else ""
        yield from (f"### `{full}{made}`", "", summary(thing), "")
        if name == LOOP:
            return
        found = members(thing)
        data = [key for key, value in found.items() if value is None]
        if data and not made:
            yield from (f"Attributes: {', '.join(f'`{key}`' for key in data)}.", "")
        lines = [member_line(key, value) for key, value in found.items() if value is not None]
        yield from (*lines, "") if lines else ()


def errors() -> Iterator[str]:
    """List the error classes with their codes."""
    yield from ("| error | code | |", "|---|---|---|")
    for name in weft.__all__:
        error = getattr(weft, name)
        if inspect.isclass(error) and issubclass(error, BaseException):
            code = f"`{error.code}`" if issubclass(error, weft.WeftError) else ""
            yield f"| `weft.{name}` | {code} | {summary(error)} |"
    yield ""


def members(cls: type) -> dict[str, Any]:
    """The public members: functions and properties, and None for plain attributes."""
    internal = " ".join(INTERNAL.get(base.__name__, "") for base in cls.__mro__).split()
    return {name: value for name, value in all_members(cls).items() if name not in internal}


def all_members(cls: type) -> dict[str, Any]:
    """Everything without an underscore, inherited from Weft's own classes too."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] != "weft":
            continue
        names = [*vars(base), *getattr(base, "__struct_fields__", ()), *assigned(base)]
        for name in names:
            value = vars(base).get(name)
            shown = value if callable(value) or isinstance(value, property | classmethod) else None
            if not name.startswith("_"):
                found[name] = found.get(name) if shown is None else shown
    return found


def assigned(cls: type) -> list[str]:
    """The attributes that `__init__` sets."""
    if not inspect.isfunction(vars(cls).get("__init__")):
        return []
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls.__init__)))  # type: ignore[misc]
    except OSError:  # the `__init__` of a dataclass has no source
        return []
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return [node.attr for node in stores if isinstance(node.value, ast.Name) and node.value.id == "self"]


def member_line(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"- `{name}`: {summary(value)}"
    function = value.__func__ if isinstance(value, classmethod) else value
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    return f"- `{awaited}{name}{signature(function)}`: {summary(function)}"


def signature(function: Any) -> str:
    """The parameters without their types. Where they are only in overloads, those of the longest one."""
    found = inspect.signature(function)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found.parameters.values()):
        overloads = [inspect.signature(one) for one in typing.get_overloads(function)]
        found = max([found, *overloads], key=lambda one: len(one.parameters))
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_default(parameter))
        for parameter in found.parameters.values()
        if parameter.name not in {"self", "cls"} and not parameter.name.startswith("_")
    ]
    return str(inspect.Signature(bare))


def _default(parameter: inspect.Parameter) -> Any:
    """A default as it can be shown: without addresses of objects."""
    default = parameter.default
    if default is inspect.Parameter.empty or isinstance(default, str | int | float | tuple | None):
        return default
    return _Dots()


class _Dots:
    def __repr__(self) -> str:
        return "..."


def summary(thing: Any) -> str:
    """The first paragraph of a docstring, as Markdown in one line."""
    text = inspect.getdoc(thing) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r"``|:\w+:`([^`]*)`", lambda match: f"`{match[1]}`" if match[1] else "`", first).replace("|", "\\|")
