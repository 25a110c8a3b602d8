"""Find what a jq program may not use: the environment, the clock, other inputs and files, and the end of the process.

A small lexer finds the names in a program, so that ``.now``, ``{now: 1}`` and the text ``"now"`` stay allowed. What it
refuses is also defined away where the program is compiled, so that nothing depends on the lexer alone.
"""

from __future__ import annotations

import re
from typing import Final

from weft.pipelines.faults import StepFault

EXACT_MAX: Final = 1 << 53
"""jq calculates with floats: integers beyond this are rounded."""

_REFUSED: Final = frozenset({
    "debug", "env", "get_search_list", "halt", "halt_error", "import", "include", "input", "input_filename",
    "input_line_number", "inputs", "localtime", "modulemeta", "now", "stderr", "strflocaltime",
})  # fmt: skip
_REFUSED_VARIABLES: Final = frozenset({"ENV", "__prog_args", "__prog_name"})

GUARD: Final = (
    "def env: null; def now: null; def input: null; def inputs: empty; def modulemeta: null; def halt: null; "
    "def halt_error: null; def halt_error($code): null; def input_filename: null; def input_line_number: null; "
    "def get_search_list: null; def debug: .; def debug(f): .; def stderr: .; def localtime: null; "
    "def strflocaltime(f): null; {} as $ENV | "
)
"""Comes before every program. After it, import and include are syntax errors."""

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<field>\.[A-Za-z_]\w*)
      | (?P<variable>\$\s*(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)
      | (?P<format>@[A-Za-z0-9_]+)
      | (?P<name>(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<quote>")
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES: Final = frozenset(")]}")


def check_program(program: str) -> None:
    """Raise StepFault if a jq program uses something that pipelines do not allow."""
    if "\0" in program:
        raise StepFault("bad_argument", "query contains a character that jq cannot read.")
    open_: list[str] = []
    before, at = "", 0
    while at < len(program):
        token = _TOKEN.match(program, at)
        assert token is not None, "a sign matches anything"
        at, text, what = token.end(), token.group(), token.lastgroup
        if what == "space":
            continue
        if what == "name" and not _is_key(open_, before):
            _refuse_name(text)
        elif what == "variable":
            _refuse_variable(text.lstrip("$").strip())
        elif what == "number":
            _refuse_number(text)
        elif what == "quote":
            at = _after_string(program, at, open_)
        elif text in "([{":
            open_.append(text)
        elif text in _CLOSES and open_ and open_.pop() == '"':
            at = _after_string(program, at, open_)
        before = text


def _is_key(open_: list[str], before: str) -> bool:
    """Return whether a name stands where the key of an object stands."""
    return bool(open_) and open_[-1] == "{" and before in ("{", ",")


def _after_string(program: str, at: int, open_: list[str]) -> int:
    """Return where a string ends, or where the expression in it begins, which ``open_`` then says."""
    while at < len(program):
        if program[at] == '"':
            return at + 1
        if program.startswith("\\(", at):
            open_.append('"')
            return at + 2
        at += 2 if program[at] == "\\" else 1
    return at


def _refuse_name(name: str) -> None:
    if name in _REFUSED:
        raise StepFault(
            "bad_argument",
            f"query uses {name}, which pipelines do not allow.",
            "A program may use only the data that it gets. Read a field of that name as `." + name + "`.",
        )


def _refuse_variable(name: str) -> None:
    if name in _REFUSED_VARIABLES:
        raise StepFault("bad_argument", f"query uses ${name}, which pipelines do not allow.")


def _refuse_number(text: str) -> None:
    if text.isdigit() and int(text) > EXACT_MAX:
        raise StepFault("bad_argument", f"jq would round the number {text} in query.", "Write long numbers as text.")
