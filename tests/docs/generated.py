"""Pages that the program writes itself: `python -m tests.docs.generated` writes them, a test compares them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import weft
from tests.docs.http_api import http_api_page
from tests.docs.imports import with_imports
from tests.docs.reference import reference_pages
from tests.docs.settings import settings_page
from tests.docs.ui_types import TYPES, ui_types
from weft.cli import commands
from weft.observe.error_pages import PAGES
from weft.observe.pictures.css_tokens import css_tokens

DOCS = Path(__file__).parents[2] / "docs"
TOKENS = Path(__file__).parents[2] / "ui/src/style/tokens.css"
NOTE = "<!-- Written by `python -m tests.docs.generated`; change it there. -->"

CLI_INTRODUCTION = """\
# The command `weft`

It looks at runs and steers them, in whatever process they are hosted. `weft run` hosts a run itself; every other
command speaks to the store and leaves the work to the process that has the workflow.

The store is `--url`, the environment variable `WEFT_URL`, or `[tool.weft] url` in `pyproject.toml`, else
`sqlite:///weft.db` in this folder; the file with your app is named on the command line, by `--app`, or by
`[tool.weft] app`. RUN is the id of a run, or the beginning of one that no other has. Every listing names its store,
and every command that reads takes `--json`. Arguments are given by name, `n=3`: what the type of the parameter
accepts is taken, as text or as JSON.

The exit code is 0 when it is done, 1 when it was refused or failed, 2 when it was asked for wrongly, 130 after
Ctrl-C.
"""

ERRORS_INTRODUCTION = """\
# Errors

Every error of Weft is a `weft.WeftError` with a stable `code`, a `hint`, and a page here; `weft help CODE` prints the
page. Its text says what happened, where, and what to do. Cancellation and `weft.Evicted` are no errors: they come from
`BaseException` and pass `except Exception`.
"""

TITLES = {
    "usage": "The call is wrong",
    "value": "A value is wrong",
    "code": "The code of a workflow",
    "run": "Runs",
    "step": "Steps",
    "wait": "Waits",
    "schedule": "Schedules",
    "start": "Rules about starts",
    "patch": "Patches of runs",
    "tag": "Versions and tags",
    "bundle": "Bundles",
    "backup": "Backups",
    "hook": "Hooks",
    "bulk": "Bulks",
    "fork": "Forks",
    "ask": "Questions to people",
    "access": "Access",
    "policy": "Policies",
    "store": "The store",
    "limit": "Limits",
    "resource": "Resources of steps",
    "budget": "Budgets",
    "request": "Requests to the API",
    "task": "Tasks of workers elsewhere",
    "stream": "Workers on streams",
    "expression": "Expressions and conditions",
    "graph": "Graphs",
    "goal": "Goals",
    "pipeline": "Pipelines",
    "script": "Scripts",
    "http": "HTTP",
    "model": "Models",
    "agent": "Agents",
    "tool": "Tools of agents",
    "weft": "Anything else",
}


def errors_page() -> str:
    """All error codes, explained."""
    classes = classes_by_code()
    parts = [NOTE, "", ERRORS_INTRODUCTION]
    for family, title in TITLES.items():
        codes = [code for code in PAGES if code.partition(".")[0] == family]
        if codes:
            parts += [f"## {title}", ""]
        for code in codes:
            page = PAGES[code]
            raised = f" · `weft.{classes[code]}`" if code in classes else ""
            parts += [
                f"### `{code}`{raised}",
                "",
                plain(page.what),
                "",
                plain(page.why),
                "",
                f"**What to do.** {plain(page.todo)}",
                "",
            ]
    missing = {code.partition(".")[0] for code in PAGES} - set(TITLES)
    assert not missing, f"no title for {missing}"
    return "\n".join(parts)


def plain(text: str) -> str:
    """Text of the terminal as Markdown."""
    return text.replace("*", "\\*")


def classes_by_code() -> dict[str, str]:
    """The public class that has a code by default."""
    found: dict[str, str] = {}
    for name in weft.__all__:
        public = getattr(weft, name)
        if inspect.isclass(public) and issubclass(public, weft.WeftError):
            found.setdefault(public.code, name)
    return found


def cli_page() -> str:
    """Every verb with its words and options, in the order of `weft --help`."""
    parts = [NOTE, "", CLI_INTRODUCTION]
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in commands.command_line().commands.items():
        panels.setdefault(command.rich_help_panel, []).append((name, command))
    for panel in (commands.RUNNING, commands.LOOKING, commands.STEERING, commands.OTHER):
        parts += [f"## {panel}", ""]
        for name, command in panels[panel]:
            parts += list(verb_lines(name, command))
    return "\n".join(parts)


def verb_lines(name: str, command: Any) -> Iterator[str]:
    words = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    shown = " ".join([f"weft {name}", *(word.metavar or word.name.upper() for word in words)])
    yield from (f"### `{shown}`", "", inspect.cleandoc(command.help or ""), "")
    rows = [(word.metavar or word.name.upper(), word.help) for word in words] + [
        (flags(option), option.help) for option in options
    ]
    if rows:
        yield from ("| | |", "|---|---|")
        yield from (f"| `{first.replace('|', chr(92) + '|')}` | {second or ''} |" for first, second in rows)
        yield ""


def flags(option: Any) -> str:
    named = ", ".join(option.opts)
    return named if option.is_flag else f"{named} {option.metavar or option.name.upper()}"


def tokens_css() -> str:
    """The colours of the web UI, from the table of the pictures."""
    return f"/* Written by `python -m tests.docs.generated` from observe/pictures/colours.py. */\n\n{css_tokens()}"


@cache
def pages() -> dict[str, str]:
    return {name: re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n" for name, text in _texts().items()}


def _texts() -> dict[str, str]:
    return {
        "architecture.md": with_imports((DOCS / "architecture.md").read_text()),
        "cli.md": cli_page(),
        "errors.md": errors_page(),
        "http-api.md": f"{NOTE}\n\n{http_api_page()}",
        **{name: f"{NOTE}\n\n{text}" for name, text in reference_pages().items()},
        "settings.md": f"{NOTE}\n\n{settings_page()}",
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text)
    TOKENS.parent.mkdir(parents=True, exist_ok=True)
    TOKENS.write_text(tokens_css())
    TYPES.write_text(ui_types())
