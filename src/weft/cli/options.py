"""The options and arguments that several commands have in common."""

from __future__ import annotations

from typing import Annotated

import typer

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="The store, such as sqlite:///shop/weft.db.")]
Processes = Annotated[
    str, typer.Option(metavar="N", help="How many processes share the work, on one store: one for each core.")
]
AppFile = Annotated[
    str | None,
    typer.Option("--app", metavar="FILE[:NAME]", help="The file with the weft.App, also [tool.weft] app."),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: one JSON document.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or the beginning of it.")]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Arguments by name, read by their declared types.")
]
Input = Annotated[str | None, typer.Option("--input", metavar="FILE", help="A JSON file with the arguments.")]
Id = Annotated[str | None, typer.Option("--id", metavar="ID", help="The id of the run. A repeated id is the same run.")]
WorkflowName = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Its name.")]
