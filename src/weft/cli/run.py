"""``weft run`` and ``weft start``. The first hosts a run and waits for it; the second leaves it to another process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from weft.authoring.app import App
from weft.authoring.facts import Facts
from weft.authoring.graphs import Graph
from weft.authoring.runnable import Runnable
from weft.authoring.workflows import Workflow
from weft.cli.app_file import LoadedApp, load_app
from weft.cli.arguments import keep_text, read_arguments, split_pairs
from weft.cli.live_run import LiveNotices
from weft.cli.login import login
from weft.cli.messages import say
from weft.cli.operations import run_operations
from weft.cli.output import pretty_result, print_json
from weft.cli.plan import known_steps
from weft.cli.run_control import NO_HOST, is_acted_on, say_who
from weft.cli.store_access import open_service, refuse_server, store_exists, url_of
from weft.core import values
from weft.core.escapes import escape_controls
from weft.core.ids import RunId
from weft.core.run.questions import STARTED_BY
from weft.errors import UnknownWorkflow, UsageError
from weft.observe.goal_views import shown_goal_outputs
from weft.observe.sentences import start_words
from weft.observe.start_wait import start_wait, starts_at
from weft.runtime.catalogue_log import CATALOGUE
from weft.runtime.offered_versions import check_offered_start, warn_if_not_offered
from weft.runtime.orders import StartOrder, stored_workflow
from weft.runtime.programs import read_graph
from weft.runtime.service import RunService
from weft.runtime.typed_words import Read, reader_for_schema, reader_for_signature, reader_for_type
from weft.runtime.version_refs import is_version_ref, parse_version_ref
from weft.settings import project_text


class RunRequest(msgspec.Struct, frozen=True):
    """The arguments of ``weft run``, ``[FILE] WORKFLOW [KEY=VALUE]...``, and its options."""

    words: Sequence[str]
    app: str | None
    source: str | None
    id: str | None

    def parts(self) -> tuple[str, str, Sequence[str]]:
        """Return the file with the app, the workflow and its arguments. Raises UsageError."""
        default_file = self.app or project_text("app")
        first, *rest = self.words
        if not default_file or (rest and "=" not in rest[0]) or _is_file(first):
            if not rest or "=" in rest[0]:
                raise UsageError(
                    f"weft run {first} names no {'workflow' if _is_file(first) else 'file'}.",
                    hint="weft run app.py order order_id=o-1. The file can also be in --app or [tool.weft] app.",
                )
            return first, rest[0], rest[1:]
        return default_file, first, rest


def _is_file(word: str) -> bool:
    return Path(word.partition(":")[0]).suffix == ".py"


def run_here(request: RunRequest, *, url: str | None, json: bool) -> None:
    """Run a workflow in this process and print its result, as ``app.run`` does."""
    file, workflow, words = request.parts()
    loaded = load_app(file, "weft run")
    if url is not None:
        loaded.app.url = url
    refuse_server(loaded.app.url, "weft run", "it hosts the run here, beside its store")
    loaded.app.notices = LiveNotices
    if is_version_ref(workflow):
        reader = asyncio.run(_version_reader(loaded.app, workflow))
        result = loaded.app.run(workflow, read_arguments(words, request.source, reader), id=request.id)
        raw = values.encode(result, what=f"{workflow} returned")
    else:
        runnable = workflow_of(loaded, workflow)
        arguments = read_arguments(words, request.source, _argument_reader(runnable, loaded.app))
        result = loaded.app.run(runnable, arguments, id=request.id)
        raw = runnable.result.encode(result, what=f"{workflow} returned")
    if isinstance(result, Facts):
        gives = {goal for goal in result.returned if (step := loaded.app.registered.planned_step(goal)) and step.gives}
        raw = values.encode(shown_goal_outputs(result.result, result.returned, gives), what=f"{workflow} gave")
    if json:
        print_json(values.decode(raw))
    else:
        print(escape_controls(pretty_result(raw)) if sys.stdout.isatty() else pretty_result(raw))


async def start_run(
    workflow: str,
    *,
    words: Sequence[str],
    source: str | None,
    id: str | None,
    url: str | None,
    app: str | None,
    priority: int = 0,
) -> None:
    """Add a new run to the store. With an app, its arguments are checked here, and otherwise by its host.

    Arguments that no running host takes are refused here too, and so is a start without one that all of them need.
    """
    # The host of a version that is not the app's own reads what was typed.
    target = (app or project_text("app")) if not is_version_ref(workflow) else None
    loaded = load_app(target, "weft start") if target else None
    read = _argument_reader(loaded.workflow(workflow), loaded.app) if loaded is not None else keep_text
    arguments = read_arguments(words, source, read)
    attributes = {STARTED_BY: name} if (name := login()) else {}
    order = StartOrder(
        workflow=workflow,
        input=arguments,
        id=id,
        attributes=attributes,
        words=list(split_pairs(words)) if loaded is None else (),
        priority=priority,
    )
    async with open_service(url_of(url, app, loaded), create=True) as service:
        if loaded is None and not is_version_ref(workflow):
            await check_offered_start(service, workflow, arguments, order.words)
        catalogue = loaded.app.catalogue() if loaded is not None else None
        await _print_started(service, RunId(await run_operations(service).start(order, catalogue)))


async def _print_started(service: RunService, run_id: RunId) -> None:
    print(run_id, flush=True)
    row = await service.row(run_id)
    if await is_acted_on(service, row):
        return
    now = await service.row(run_id)
    wait, later = await start_wait(service, now), starts_at(now, service.clock.now_ms())
    if wait is not None or later is not None:
        say(f"it waits for {start_words(wait, later)}. More: weft explain {run_id}")
    else:
        await say_who(service, now, await warn_if_not_offered(service, now.workflow) or NO_HOST)


async def start_goals(
    goals: Sequence[str],
    *,
    words: Sequence[str],
    source: str | None,
    id: str | None,
    url: str | None,
    app: str | None,
    priority: int = 0,
) -> None:
    """Add a run for goals to the store. With an app, it is planned here, and otherwise by its host."""
    async with known_steps(url, app, "weft start", create=True) as known:
        if known.service is None:
            raise UsageError(
                f"{known.address} is not durable, so no host can find the run.", hint="Name a store: --url"
            )
        attributes = {STARTED_BY: name} if (name := login()) else {}
        app_here = known.group if isinstance(known.group, App) else None
        order = StartOrder(
            goals=goals,
            input=read_arguments(words, source, _fact_reader(app_here) if app_here is not None else keep_text),
            id=id,
            attributes=attributes,
            words=list(split_pairs(words)) if app_here is None else (),
            priority=priority,
        )
        catalogue = app_here.catalogue() if app_here is not None else None
        await _print_started(known.service, RunId(await run_operations(known.service).start(order, catalogue)))


def workflow_of(loaded: LoadedApp, name: str) -> Runnable[Any]:
    """Return a workflow of the app, or the newest graph of this name in its store. Raises UnknownWorkflow."""
    try:
        return loaded.workflow(name)
    except UnknownWorkflow:
        stored = asyncio.run(_stored_graph(loaded.app.url, name))
        if stored is None:
            raise
        return loaded.app.graph(stored)


async def _version_reader(app: App, name: str) -> Read:
    """Return the function that turns the text of an argument into the type that a version declares."""
    if app.url.startswith("memory:") or not store_exists(app.url):
        return keep_text
    async with open_service(app.url) as service:
        ref = parse_version_ref(name)
        version = ref.version or await service.tags.version(ref)
        stored = await stored_workflow(service.store.definitions, ref.workflow, version)
    if stored is not None:
        return reader_for_schema(read_graph(stored).graph.input)
    known = app.registered.known(ref.workflow, version)
    return _argument_reader(known, app) if known is not None else keep_text


async def _stored_graph(url: str, name: str) -> dict[str, Any] | None:
    if url.startswith("memory:") or not store_exists(url):
        return None
    async with open_service(url) as service:
        versions = await service.store.definitions.versions(name) if name != CATALOGUE else ()
    hosted = [one for one in versions if one.origin == "hosted"]
    return dict(read_graph(hosted[-1]).source) if hosted else None


def _argument_reader(runnable: Runnable[Any], app: App) -> Read:
    """Return the function that turns the text of an argument into its declared type."""
    if isinstance(runnable, Workflow):
        return reader_for_signature(runnable.signature)
    if isinstance(runnable, Graph):
        return reader_for_schema(runnable.loaded.graph.input)
    return _fact_reader(app)


def _fact_reader(app: App) -> Read:
    return lambda fact, text: reader_for_type(app.registered.planner.fact_type(fact))(text)
