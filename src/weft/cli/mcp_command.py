"""The command ``weft mcp``: its options and one line about it."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli.options import Url


def mcp(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE[:NAME]]...", help="The files with the apps.")
    ] = None,
    *,
    decide: Annotated[
        bool, typer.Option("--decide", help="Let the model answer questions of runs that it did not start.")
    ] = False,
    url: Url = None,
) -> None:
    """Host apps for an MCP client, over stdin and stdout: offered workflows are its tools."""
    from weft.cli.mcp import serve_client

    serve_client(files or [], url, decides=decide)
