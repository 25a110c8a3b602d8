"""Parse the command line.

Typer reads parameters with pydantic, whose import takes longer than most commands. ``TextCommand`` passes the text of
arguments on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup

RUNNING, LOOKING, STEERING, OTHER = "Run", "Look", "Steer", "More"


class TextCommand(TyperCommand):
    """A command that gets its arguments as text."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_typed(parameter) for parameter in super().get_params(ctx)]


def _as_typed(parameter: Any) -> Any:
    read = parameter.process_value
    if isinstance(read, partial):
        return parameter
    parameter.process_value = partial(_value, parameter.required, read)
    return parameter


def _value(required: bool, read: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:  # noqa: FBT001
    if isinstance(value, str) or (value is None and not required):
        return value
    if isinstance(value, tuple) and (value or not required):
        return list(value)
    return read(context, value)


class CommandGroup(TyperGroup):
    """All commands. The help lists them by purpose."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_typed(parameter) for parameter in super().get_params(ctx)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for panel in (RUNNING, LOOKING, STEERING, OTHER):
            found = [(name, command) for name, command in self.commands.items() if command.rich_help_panel == panel]  # type: ignore[attr-defined]
            with formatter.section(panel):
                formatter.write_dl([(f"{name:9}", command.get_short_help_str(90)) for name, command in found])
