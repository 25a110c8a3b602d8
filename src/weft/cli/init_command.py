"""The command ``weft init``: its options and one line about it."""

from __future__ import annotations

from typing import Annotated

import typer


def init(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="A directory that is new or empty.")] = ".",
) -> None:
    """Make a small project that runs: an app, a test, pyproject.toml, Dockerfile and README."""
    from weft.cli.new_project import make_project

    make_project(folder)
