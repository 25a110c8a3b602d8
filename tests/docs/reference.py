"""The reference of the Python API, written from signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import weft
import weft.testing

INTRODUCTION = """\
# Reference

Every public name of `weft` and `weft.testing`, from signatures and docstrings. What must be awaited begins with
`async`. [Code workflows](code-workflows.md), [graphs](graphs.md) and [goals](goals.md) show the names in use,
[Commands](cli.md) lists what `weft` does on the command line, [HTTP API](http-api.md) what a server answers, and
[Errors](errors.md) says what to do about an error.
"""

SECTIONS = {
    "Apps and clients": ["App", "Group", "Client"],
    "Programs without an event loop": [
        *("BlockingApp", "BlockingClient", "BlockingHandle", "BlockingBulk"),
        *("BlockingSchedules", "BlockingWorkflows"),
    ],
    "Steps": ["Step", "Retry", "Limit", "Duration", "Task", "task", "Secret", "Resource", "injected"],
    "Code workflows": [
        *("Workflow", "Context", "context", "Call", "Message", "Answer", "Ok", "Err", "Winner"),
        *("Again", "Done", "Turn", "again", "done"),
    ],
    "Language models": ["Prices"],
    "Budgets": ["Budget", "RunUsage", "BudgetUsage", "UnitUsage", "Spender"],
    "Agents": ["Agent", "Reply", "ToolCall", "Usage", "mcp", "person", "tool"],
    "Rules about starts": ["Singleton", "Debounce", "Batch"],
    "Schedules": ["Schedules", "Schedule", "AddedSchedule", "NominalTime"],
    "Hooks": ["HookEvent", "HookQuestion"],
    "Bulks": ["Bulk", "BulkResult", "RefusedRuns"],
    "Checks of open runs": ["LiveReport", "LiveGroup"],
    "Runs": ["Handle", "ChildHandle", "Event", "LogLine", "Explanation", "Failure"],
    "Graphs": ["Graph", "GraphNode", "Finding", "NodeType", "register_node_type"],
    "Goals": ["Goal", "Plan", "Facts", "Fact", "Each", "Const", "lua", "ale"],
}
"""Where each name of `weft` stands; errors have a table of their own."""

ALIASES = {
    "Call": "A call of a step or workflow that was not awaited yet: `charge(7)`. A coroutine that knows its arguments.",
    "Duration": 'A time span: seconds as a number, text such as `"5m"` or `"1h30m"`, or a `timedelta`.',
    "injected": "The default of a step's parameter that is a resource: `pool: Pool = weft.injected`. Callers omit it.",
    "Turn": "What the body of `ctx.loop` returns: `Again` or `Done`.",
}

CONSTRUCTED = {
    *(
        "App",
        "Group",
        "Client",
        "Retry",
        "Limit",
        "Prices",
        "Singleton",
        "Debounce",
        "Batch",
        "Secret",
        "Graph",
        "NodeType",
        "Fact",
        "Each",
        "Const",
    ),
    *("Again", "Done", "Ok", "Err", "World", "Rates"),
}
"""Classes that users make; of the others they are given objects."""

INTERNAL = {
    "App": "registered notices bind blob_content blobs calls catalogue run_handle host_only is_tolerant launch "
    "open_resources redis redis_names run_and_wait service",
    "Client": "service run_handle",
    "FaultyStore": "offset_ms inner log directory inboxes hosts blobs tasks definitions tags streams access memos open "
    "close url retention holds",
    "Goal": "style group version timeout_ms result plan_for given goals",
    "Graph": "style group version timeout_ms result plan_for given gives load loaded register refuse_unknown",
    "GraphNode": "graph",
    "Group": "registered",
    "Handle": "codec read",
    "Plan": "plan",
    "Resource": "fn needs open",
    "Task": "note_output",
    "Step": "planning fn group signature policy body raises undo_plan",
    "Workflow": "style group version timeout_ms result plan_for given fn signature gives",
}
"""Members without an underscore that only other parts of Weft use. A subclass inherits its list."""

LOOP = "SimLoop"
"""An asyncio event loop: its methods are those of asyncio."""


WIDE = 100
"""A signature that is longer has a line for each parameter."""


def reference_pages() -> dict[str, str]:
    """Write all pages: an index, a page for each section, and one for testing."""
    index, found = [INTRODUCTION], {}
    for title, names in SECTIONS.items():
        page = f"reference/{title.lower().replace(' ', '-')}.md"
        index += [f"## {title}", "", *table(weft, names, page)]
        found[page] = section(title, weft, names)
    index += ["## Errors", "", *errors()]
    index += ["## Testing", "", *table(weft.testing, weft.testing.__all__, "reference/testing.md")]
    found["reference/testing.md"] = section("Testing", weft.testing, weft.testing.__all__)
    return {"reference.md": "\n".join(index), **found}


def section(title: str, module: ModuleType, names: Sequence[str]) -> str:
    return "\n".join([f"# {title}", "", *(line for name in names for line in entry(module, name))])


def table(module: ModuleType, names: Sequence[str], page: str) -> Iterator[str]:
    """List names with their first lines, and lead to their pages."""
    yield from ("| name | |", "|---|---|")
    for name in names:
        full = f"{module.__name__}.{name}"
        about = ALIASES.get(name) if module is weft else None
        anchor = re.sub(r"[^\w\- ]", "", heading(module, name).lower()).replace(" ", "-")
        yield f"| [`{full}`]({page}#{anchor}) | {about or summary(getattr(module, name))} |"
    yield ""


def heading(module: ModuleType, name: str) -> str:
    """The heading of a name. Anchors ignore case, so a function that shares its name with a class says what it is."""
    full = f"`{module.__name__}.{name}`"
    return f"The function {full}" if name.islower() and name.capitalize() in module.__all__ else full


def entry(module: ModuleType, name: str) -> Iterator[str]:
    """Describe one public name and its members."""
    thing = getattr(module, name)
    full = f"{module.__name__}.{name}"
    yield from (f"## {heading(module, name)}", "")
    if name in ALIASES and module is weft:
        yield from (ALIASES[name], "")
    elif not inspect.isclass(thing):
        yield from (*block(full, thing), *text(thing), "")
    else:
        if name in CONSTRUCTED:
            yield from block(full, thing)
        yield from (*text(thing), "")
        if name != LOOP:
            yield from described_members(thing, shows_data=name not in CONSTRUCTED)


def described_members(cls: type, *, shows_data: bool) -> Iterator[str]:
    """Describe what a class has of its own, and name the class that it has the rest from."""
    base = next((base for base in cls.__mro__[1:] if base.__name__ in weft.__all__), None)
    inherited = members(base) if base else {}
    found = {key: value for key, value in members(cls).items() if key not in inherited or value is not inherited[key]}
    if base:
        yield from (f"It also has everything that `weft.{base.__name__}` has.", "")
    data = [key for key, value in found.items() if value is None]
    if data and shows_data:
        yield from (f"Attributes: {', '.join(f'`{key}`' for key in data)}.", "")
    for key, value in found.items():
        if value is not None:
            function = value.__func__ if isinstance(value, classmethod) else value
            yield from (f"### `{cls.__name__}.{key}`", "")
            yield from () if isinstance(value, property) else block(key, function)
            yield from (*text(function), "")


def block(name: str, function: Any) -> Iterator[str]:
    """Show a signature, as it was written."""
    keyword = "async " if inspect.iscoroutinefunction(function) else ""
    parameters, result = signature(function)
    line = f"{keyword}{name}({', '.join(parameters)}){result}"
    if len(line) > WIDE:
        line = "\n".join([f"{keyword}{name}(", *(f"    {one}," for one in parameters), f"){result}"])
    yield from ("```py", line, "```", "")


def text(thing: Any) -> Iterator[str]:
    """The whole docstring, as Markdown."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    for line in lines:
        raised = re.fullmatch(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if line == "Raises:":
            yield from ("Raises:", "")
        elif raised:
            names = raised[1].replace(", ", "`, `")
            yield f"- `{names}`: {as_markdown(raised[2])}"
        else:
            yield as_markdown(line)


def as_markdown(line: str) -> str:
    return re.sub(r"``|:\w+:`([^`]*)`", lambda match: f"`{match[1]}`" if match[1] else "`", line)


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


def signature(function: Any) -> tuple[list[str], str]:
    """The parameters and the result. Where they are only in overloads, those of the longest one."""
    found = inspect.signature(function)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found.parameters.values()):
        overloads = [inspect.signature(one) for one in typing.get_overloads(function)]
        found = max([found, *overloads], key=lambda one: len(one.parameters))
    shown = [
        parameter.replace(annotation=_Written(parameter.annotation), default=_default(parameter))
        for parameter in found.parameters.values()
        if parameter.name not in {"self", "cls"} and not parameter.name.startswith("_")
    ]
    parameters: list[str] = []
    for before, parameter in zip([None, *shown], shown, strict=False):
        if parameter.kind is parameter.KEYWORD_ONLY and (
            before is None or before.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        ):
            parameters.append("*")
        parameters.append(str(parameter))
    result = found.return_annotation
    shows_result = result is not inspect.Signature.empty and not inspect.isclass(function)
    return parameters, f" -> {_Written(result)!r}" if shows_result else ""


def _default(parameter: inspect.Parameter) -> Any:
    """A default as it can be shown: without addresses of objects."""
    default = parameter.default
    if default is inspect.Parameter.empty or isinstance(default, str | int | float | tuple | None):
        return default
    return _Dots()


class _Dots:
    def __repr__(self) -> str:
        return "..."


class _Written:
    """An annotation as its author wrote it."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def __repr__(self) -> str:
        written = self._annotation if isinstance(self._annotation, str) else inspect.formatannotation(self._annotation)
        return re.sub(r"\b(?:typing|collections\.abc|datetime|weft(?:\.\w+)*)\.(?=\w)", "", written)


def summary(thing: Any) -> str:
    """The first paragraph of a docstring, as Markdown in one line."""
    text = inspect.getdoc(thing) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return as_markdown(first).replace("|", "\\|")
