"""Declare the commands of ``weft``, with their options and help. The other modules implement them.

Every parameter is text or a flag; each command parses its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Annotated, Any, TypeVar

import typer

from weft.cli.backup_command import backup, restore
from weft.cli.budget_command import budget
from weft.cli.bundle_commands import export, import_, replay
from weft.cli.check_command import check
from weft.cli.diff_command import diff
from weft.cli.doctor_command import doctor
from weft.cli.fork_command import fork
from weft.cli.init_command import init
from weft.cli.logs_command import logs
from weft.cli.mcp_command import mcp
from weft.cli.models_command import models
from weft.cli.monitoring import monitoring
from weft.cli.options import (
    AppFile,
    Arguments,
    Id,
    Input,
    Json,
    OfWorkflow,
    Priority,
    Processes,
    Run,
    Since,
    Url,
    Where,
    WithStatus,
)
from weft.cli.parser import LOOKING, OTHER, RUNNING, STEERING, CommandGroup, TextCommand
from weft.cli.patch_command import patch
from weft.cli.policy_command import policy
from weft.cli.retention_command import delete, gc, keep
from weft.cli.run_control_commands import cancel, pause, resume, retry
from weft.cli.schedule_command import schedule
from weft.cli.set_command import set_
from weft.cli.status_command import status
from weft.cli.tools_command import tools
from weft.cli.workflows_command import workflows

F = TypeVar("F", bound=Callable[..., None])


cli = typer.Typer(
    cls=CommandGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
    epilog="RUN is an id or the beginning of one. The store is --url, WEFT_URL or [tool.weft] url in pyproject.toml, "
    "else sqlite:///weft.db.",
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if wanted:
        version()
        raise typer.Exit


@cli.callback()
def weft(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Durable workflows for Python: start runs, look at them, steer them."""


@cache
def command_line() -> Any:
    """Return the parser."""
    return typer.main.get_command(cli)


def declare(panel: str, name: str | None = None) -> Callable[[F], F]:
    """Register a function as a command of ``weft``."""
    return cli.command(name, cls=TextCommand, rich_help_panel=panel)


def _wait(coroutine: Coroutine[Any, Any, int | None]) -> None:
    # Imported here, because the help does not need it.
    import asyncio

    code = asyncio.run(coroutine)
    if code:
        raise typer.Exit(code)


def _count(text: str | None, option: str, least: int) -> int:
    if text is None or not text.isascii() or not text.isdigit() or int(text) < least:
        raise typer.BadParameter(f"{text!r} is not a number of at least {least}.", param_hint=option)
    return int(text)


def _whole(text: str, option: str) -> int:
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise typer.BadParameter(f"{text!r} is not a whole number.", param_hint=option)
    return int(text)


# --- run ----------------------------------------------------------------------------------------------------------


@declare(RUNNING)
def run(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE[:NAME]] WORKFLOW [KEY=VALUE]...",
            help="The file (or module) with the weft.App, else that of --app; the workflow; its arguments, by name.",
        ),
    ],
    *,
    id: Id = None,
    input: Input = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Start or continue a run here, wait for it, and print its result."""
    from weft.cli.run import RunRequest, run_here

    run_here(RunRequest(words, app, input, id), url=url, json=json)


@declare(RUNNING)
def start(
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="Its name; not with --goal.")] = "",
    arguments: Arguments = None,
    *,
    goal: Annotated[
        list[str] | None, typer.Option(metavar="STEP[,STEP]...", help="Start a run for these goals instead.")
    ] = None,
    id: Id = None,
    input: Input = None,
    priority: Priority = "0",
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Start a run in the process that hosts the workflow or can reach the goals, and print its id."""
    from weft.cli.run import start_goals, start_run

    words, rank = arguments or [], _whole(priority, "--priority")
    goals = [name for names in goal or [] for name in names.split(",") if name]
    if goals:
        words = [workflow, *words] if workflow else words
        _wait(start_goals(goals, words=words, source=input, id=id, url=url, app=app, priority=rank))
        return
    if not workflow:
        raise typer.BadParameter("Name a workflow, or --goal.", param_hint="WORKFLOW")
    _wait(start_run(workflow, words=words, source=input, id=id, url=url, app=app, priority=rank))


Files = Annotated[list[str] | None, typer.Argument(metavar="[FILE[:NAME]]...", help="The files with the apps.")]


@declare(RUNNING)
def serve(
    files: Files = None,
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[str, typer.Option(metavar="N", help="The port; 0 picks a free one.")] = "8420",
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="Q", help="Perform only steps of this queue, leave others to workers; may be repeated."),
    ] = None,
    processes: Processes = "1",
    url: Url = None,
) -> None:
    """Host apps and answer requests: engine, HTTP API and web UI."""
    from weft.cli.serve import ServeOptions
    from weft.cli.serve import serve as serve_apps

    count = _count(processes, "--processes", 1)
    options = ServeOptions(files=files or [], queues=queue or [], url=url, processes=count)
    serve_apps(options, host=host, port=_count(port, "--port", 0))


@declare(RUNNING)
def dev(
    files: Files = None,
    *,
    port: Annotated[str, typer.Option(metavar="N", help="The port; 0 picks a free one.")] = "8420",
    url: Url = None,
) -> None:
    """Serve apps on this machine, and serve new code when a file is saved; errors are shown in the web UI."""
    from weft.cli.dev import develop
    from weft.cli.serve import ServeOptions

    develop(ServeOptions(files=files or [], url=url), port=_count(port, "--port", 0))


@declare(RUNNING)
def worker(
    files: Files = None,
    *,
    queue: Annotated[list[str] | None, typer.Option(metavar="Q", help="Its steps; may be repeated.")] = None,
    processes: Processes = "1",
    url: Url = None,
) -> None:
    """Perform steps of a queue for runs that other processes host."""
    from weft.cli.serve import ServeOptions, work

    count = _count(processes, "--processes", 1)
    work(ServeOptions(files=files or [], queues=queue or ["default"], url=url, processes=count))


# --- look ---------------------------------------------------------------------------------------------------------


@declare(LOOKING, "list")
def list_(
    *,
    workflow: OfWorkflow = None,
    status: WithStatus = None,
    since: Since = None,
    where: Where = None,
    all: Annotated[bool, typer.Option("--all", help="Also Weft's own runs, such as those of schedules.")] = False,
    forks: Annotated[str | None, typer.Option(metavar="RUN", help="Only forks of this run.")] = None,
    imported: Annotated[bool, typer.Option("--imported", help="Only imported runs, by the status they had.")] = False,
    limit: Annotated[str, typer.Option(metavar="N", help="How many at once.")] = "20",
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="Continue after the previous page.")] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Find runs, newest first."""
    from weft.cli.run_list import TypedRunFilter, print_runs

    wanted = TypedRunFilter(
        workflow, status, since, where or [], _count(limit, "--limit", 1), cursor, all, forks, imported
    )
    _wait(print_runs(wanted, url=url, app=app, json=json))


@declare(LOOKING)
def ui(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="The run to show first.")] = None,
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the address, and open no browser.", show_default=False)
    ] = False,
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Open the web UI: that of the server that hosts the store, else one for this store alone."""
    from weft.cli.ui import show_ui

    show_ui(run, url=url, app=app, print_only=print_only)


@declare(LOOKING)
def show(
    run: Run,
    *,
    tree: Annotated[bool, typer.Option("--tree", help="List what it recorded, and child runs too.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Print the picture of a graph or goal run as SVG.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print it as a Mermaid flowchart.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="List its patches instead.")] = False,
    conversation: Annotated[bool, typer.Option("--conversation", help="Print what an agent said and called.")] = False,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Show one run: its status and what it has recorded, drawn."""
    from weft.cli.show import print_picture, print_run

    if versions or conversation:
        from weft.cli.conversation import print_conversation
        from weft.cli.patches import print_versions

        _wait((print_versions if versions else print_conversation)(run, url=url, app=app, json=json))
        return
    if svg or mermaid:
        _wait(print_picture(run, kind="svg" if svg else "mermaid", url=url, app=app))
        return
    _wait(print_run(run, children=tree, url=url, app=app, json=json))


@declare(LOOKING)
def events(
    run: Run,
    *,
    after: Annotated[str, typer.Option(metavar="N", help="Only events after this number.")] = "0",
    follow: Annotated[bool, typer.Option("--follow", help="Also print new events until the run is over.")] = False,
    changes: Annotated[bool, typer.Option("--changes", help="Only what people have changed.")] = False,
    url: Url = None,
    app: AppFile = None,
    json: Annotated[bool, typer.Option("--json", help="For programs: one JSON object per line.")] = False,
) -> None:
    """Print the log of a run."""
    from weft.cli.event_list import print_events

    first = _count(after, "--after", 0)
    _wait(print_events(run, after=first, follow=follow, url=url, app=app, json=json, changes=changes))


@declare(LOOKING)
def watch(run: Run, *, url: Url = None, app: AppFile = None, json: Json = False) -> None:
    """Follow a run live until it is over or held, then print its result; with --json its log, line by line."""
    if json:
        from weft.cli.event_list import print_events

        _wait(print_events(run, after=0, follow=True, url=url, app=app, json=True))
        return
    from weft.cli.watch import watch_run

    _wait(watch_run(run, url=url, app=app))


@declare(LOOKING)
def explain(run: Run, *, url: Url = None, app: AppFile = None, json: Json = False) -> None:
    """Explain what a run waits for, since when, and what would unblock it."""
    from weft.cli.show import print_explanation

    _wait(print_explanation(run, url=url, app=app, json=json))


@declare(LOOKING)
def inbox(
    question: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only this one, with what it is about.")
    ] = None,
    *,
    of: Annotated[
        str | None, typer.Option("--of", metavar="NAME", help="Only those that this person, role: or team: may answer.")
    ] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List questions that wait for a person."""
    from weft.cli.questions import print_inbox

    _wait(print_inbox(question, of=of, url=url, app=app, json=json))


@declare(LOOKING)
def plan(
    goals: Annotated[list[str], typer.Argument(metavar="GOAL...", help="The steps whose outcome is wanted.")],
    *,
    given: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="A fact that will be given; may be repeated."),
    ] = None,
    freeze: Annotated[str | None, typer.Option(metavar="NAME", help="Store the plan as a graph of this name.")] = None,
    svg: Annotated[bool, typer.Option("--svg", help="Print its picture as SVG.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print it as a Mermaid flowchart.")] = False,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Show what reaching a goal takes: the steps, why, and what is missing."""
    from weft.cli.plan import PlanFormat, print_plan

    _wait(print_plan(goals, given or [], PlanFormat(json, svg, mermaid, freeze), url=url, app=app))


@declare(LOOKING)
def steps(
    action: Annotated[str, typer.Argument(metavar="[list|register|update|unregister]")] = "list",
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE|ID]...", help="Files with steps, or the steps to remove.")
    ] = None,
    *,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List the steps that goals are planned with, and their health; or change them."""
    from weft.cli.catalogue import change_steps, print_steps

    if action == "list":
        _wait(print_steps(url=url, app=app, json=json))
        return
    if action not in ("register", "update", "unregister"):
        raise typer.BadParameter(f"{action!r} is none of list, register, update, unregister.", param_hint="ACTION")
    if not words:
        raise typer.BadParameter("name a file with steps, or for unregister the ids of steps.", param_hint="FILE|ID")
    _wait(change_steps(action, words, url=url, app=app))


@declare(LOOKING)
def hosts(*, url: Url = None, app: AppFile = None, json: Json = False) -> None:
    """List hosts: what each one owns, and when it was last seen."""
    from weft.cli.hosts import print_hosts

    _wait(print_hosts(url=url, app=app, json=json))


# --- steer --------------------------------------------------------------------------------------------------------


@declare(STEERING)
def send(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that the run waits for.")],
    body: Annotated[str, typer.Argument(metavar="[BODY]", help="JSON, or text; - reads it from stdin.")] = "null",
    *,
    message_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Two messages with the same key count as one.")
    ] = None,
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Deliver a message to a run."""
    from weft.cli.run_control import send_message

    _wait(send_message(run, name, body, key=message_key, url=url, app=app))


@declare(STEERING)
def decide(
    question: Annotated[str, typer.Argument(metavar="ID", help="RUN:PLACE, as weft inbox lists it.")],
    answer: Annotated[str, typer.Argument(metavar="approve|reject")],
    *,
    form: Annotated[
        list[str] | None,
        typer.Option(metavar="JSON|KEY=VALUE", help="What the form asks for; KEY=VALUE may be repeated."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why.")] = "",
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; else your login name.")] = None,
    digest: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="The digest of the question that you saw; else the one of now."),
    ] = "",
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Answer a question of a run."""
    from weft.cli.questions import TypedAnswer, answer_question

    if answer not in ("approve", "reject"):
        raise typer.BadParameter(f"{answer!r} is neither approve nor reject.", param_hint="approve|reject")
    given = TypedAnswer(answer == "approve", form or [], reason, by, digest)
    _wait(answer_question(question, given, url=url, app=app))


@declare(STEERING)
def dlq(
    action: Annotated[str, typer.Argument(metavar="list|requeue|discard")] = "list",
    letter: Annotated[str | None, typer.Argument(metavar="[ID]", help="RUN:TOKEN, as the list has it.")] = None,
    *,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List, requeue or discard dead letters: work that failed for good and whose failure no edge handled."""
    from weft.cli.dead_letters import change_dead_letter, print_dead_letters

    if action == "list":
        _wait(print_dead_letters(letter, url=url, app=app, json=json))
        return
    if action not in ("requeue", "discard"):
        raise typer.BadParameter(f"{action!r} is none of list, requeue, discard.", param_hint="list|requeue|discard")
    if letter is None:
        raise typer.BadParameter("name a dead letter: weft dlq list shows their ids.", param_hint="ID")
    _wait(change_dead_letter(action, letter, url=url, app=app))


@declare(STEERING)
def queue(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one.")] = None,
    *,
    concurrency: Annotated[
        str | None, typer.Option(metavar="N", help="Perform at most this many of its tasks at once; none: no limit.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="Start at most N tasks in that time: 10/s, 500/1h, none."),
    ] = None,
    priority: Annotated[str | None, typer.Option(metavar="N", help="Higher comes first; 0 is usual.")] = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Publish its tasks on a Redis stream, for workers in any language."),
    ] = None,
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """List queues with their limits over all hosts, or set these limits."""
    from weft.cli.queues import LimitChange, limit_queue, print_queues

    change = LimitChange(concurrency, rate, priority, stream)
    if change.is_empty():
        _wait(print_queues(name, url=url, app=app, json=json))
        return
    if name is None:
        raise typer.BadParameter("name a queue: weft queue NAME --concurrency 5.", param_hint="NAME")
    _wait(limit_queue(name, change, url=url, app=app))


declare(RUNNING)(mcp)
for _view in (workflows, models, diff, logs, status):
    declare(LOOKING)(_view)
declare(STEERING)(patch)
declare(STEERING)(fork)
declare(OTHER)(export)
declare(OTHER, "import")(import_)
declare(OTHER)(replay)
declare(STEERING, name="set")(set_)
for _verb in (budget, schedule, cancel, pause, resume, retry, delete, keep, gc):
    declare(STEERING)(_verb)


# --- more ---------------------------------------------------------------------------------------------------------


for _own in (check, monitoring, policy, tools, init, doctor, backup, restore):
    declare(OTHER)(_own)


@declare(OTHER)
def migrate(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the SQL instead, and change nothing.")] = False,
    url: Url = None,
    app: AppFile = None,
) -> None:
    """Bring the store to the schema of this version."""
    from weft.cli.migrate import migrate_store

    _wait(migrate_store(dry_run=dry_run, url=url, app=app))


@declare(OTHER)
def keys(
    action: Annotated[str, typer.Argument(metavar="create|list|revoke")] = "list",
    subject: Annotated[
        str | None, typer.Argument(metavar="[NAME|ID]", help="Who will use a new key; the key to revoke.")
    ] = None,
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="read, start, decide, operate, work or admin; may be repeated."),
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="role:NAME or team:NAME to answer as; may be repeated.")
    ] = None,
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Only for runs of this tenant; else for all.")] = "",
    expires: Annotated[str, typer.Option(metavar="TIME", help="How long it is valid: 90d, or never.")] = "365d",
    url: Url = None,
    app: AppFile = None,
    json: Json = False,
) -> None:
    """Create, list or revoke API keys. The first key closes the API to everybody without one."""
    from weft.cli.keys import create_key, print_keys, requested_key, revoke_key

    if action == "list":
        _wait(print_keys(url=url, app=app, json=json))
        return
    if action not in ("create", "revoke"):
        raise typer.BadParameter(f"{action!r} is none of create, list, revoke.", param_hint="create|list|revoke")
    if subject is None:
        raise typer.BadParameter(
            "name the user of the new key, or the key to revoke: weft keys list shows all keys.", param_hint="NAME|ID"
        )
    if action == "revoke":
        _wait(revoke_key(subject, url=url, app=app))
        return
    request = requested_key(subject, scope, group, tenant)
    _wait(create_key(request, expires=expires, url=url, app=app, json=json))


@declare(OTHER, "help")
def help_(
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="The code that an error named.")] = None,
) -> None:
    """Explain an error code, or list them all."""
    from weft.cli.error_help import print_page

    print_page(code)


@declare(OTHER)
def version() -> None:
    """Print the version of Weft."""
    from importlib.metadata import version as version_of

    print(version_of("weft"))
