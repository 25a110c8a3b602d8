"""The commands ``weft backup`` and ``weft restore``: their options and one line about each."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import AppFile, Json, Url


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The new file. It must not exist yet.")],
    *,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Copy a SQLite store to a file, while hosts write to it, and check the copy."""
    from weft.cli.backup import back_up_store

    back_up_store(file, url=url, app=app, json=json)


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that weft backup wrote.")],
    *,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Make a SQLite store from a backup. A store that exists is left alone."""
    from weft.cli.backup import restore_store

    restore_store(file, url=url, app=app, json=json)
