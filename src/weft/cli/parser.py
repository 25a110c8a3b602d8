"""Parse the command line.

Typer reads parameters with pydantic, whose import takes longer than most commands. ``TextCommand`` passes the text of
arguments on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from weft.cli.server_key import remember_key

RUNNING, LOOKING, STEERING, OTHER = "Run", "Look", "Steer", "More"


KEY = "key"
KEY_HELP = "The API key for a server; better in WEFT_KEY, or in a file that WEFT_KEY_FILE names."


class TextCommand(TyperCommand):
    """A command that gets its arguments as text. One that has ``--url`` gets ``--key``, too."""

    def __init__(self, name: str | None, *, params: list[Any], **settings: Any) -> None:
        position = next((number for number, one in enumerate(params) if one.name == "url"), None)
        if position is not None:
            params = [*params[: position + 1], _key_option(params[position]), *params[position + 1 :]]
        super().__init__(name, params=params, **settings)

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_typed(parameter) for parameter in super().get_params(ctx)]

    def invoke(self, ctx: Any) -> Any:
        remember_key(ctx.params.pop(KEY, None))
        return super().invoke(ctx)


def _key_option(url: TyperOption) -> TyperOption:
    return TyperOption(
        param_decls=[f"--{KEY}"],
        type_descriptor=url.type_descriptor,
        metavar="KEY",
        help=KEY_HELP,
    )


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


SUMMARY_MAX = 300
"""The help of a command begins with a sentence, which the list of commands has whole."""


class CommandGroup(TyperGroup):
    """All commands. The help lists them by purpose."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [_as_typed(parameter) for parameter in super().get_params(ctx)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for panel in (RUNNING, LOOKING, STEERING, OTHER):
            found = [(name, command) for name, command in self.commands.items() if command.rich_help_panel == panel]  # type: ignore[attr-defined]
            with formatter.section(panel):
                formatter.write_dl([(f"{name:9}", command.get_short_help_str(SUMMARY_MAX)) for name, command in found])
