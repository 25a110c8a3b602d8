"""The names of functions and where they are defined, for messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any


def function_name(fn: Callable[..., Any]) -> str:
    """Return the name of a function; empty if it has none."""
    return str(getattr(fn, "__name__", ""))


def file_of_function(fn: Callable[..., Any]) -> str:
    """Return the name of the file that defines a function."""
    code = getattr(fn, "__code__", None)
    return PurePath(code.co_filename).name if code is not None else "?"


def place_of_function(fn: Callable[..., Any]) -> str:
    """Return the file and line that define a function."""
    code = getattr(fn, "__code__", None)
    return f"{file_of_function(fn)}:{code.co_firstlineno}" if code is not None else file_of_function(fn)
