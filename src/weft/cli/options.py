"""The options and arguments that several commands have in common."""

from __future__ import annotations

from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The store, such as sqlite:///shop/weft.db, or a server: https://…"),
]
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
Priority = Annotated[
    str, typer.Option("--priority", metavar="N", help="Of runs and steps that wait, higher ones come first.")
]
WorkflowName = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Its name.")]
Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids; one may be the beginning of an id.")]
OfWorkflow = Annotated[str | None, typer.Option("--workflow", metavar="NAME", help="Only runs of this workflow.")]
WithStatus = Annotated[
    str | None, typer.Option("--status", metavar="STATUS", help="Only runs that are running, failed, …")
]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only runs started since: 2h, 2026-01-31.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only runs with this attribute, or status=, workflow=, since=, prefix=, parent=; may be repeated.",
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would happen.")]
Apply = Annotated[bool, typer.Option("--apply", help="For many runs: do it without asking.")]
BulkJson = Annotated[bool, typer.Option("--json", help="For programs: the dry run as one JSON document.")]
Review = Annotated[
    list[str] | None,
    typer.Option("--review", metavar="WHO", help="Ask team:NAME, role:NAME or a person first."),
]
