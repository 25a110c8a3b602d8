"""``weft run`` hosts the engine for one run and waits; ``weft start`` hands a run to a process that hosts it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from weft.authoring.app import App
from weft.authoring.client import Client
from weft.authoring.facts import Facts
from weft.authoring.graphs import Graph
from weft.authoring.runnable import Runnable
from weft.authoring.workflows import Workflow, check_run_id
from weft.cli.arguments import Read, by_schema, by_signature, by_type, given, pairs, read_object
from weft.cli.entry import say
from weft.cli.live_run import LiveNotices
from weft.cli.loading import Loaded, load_app
from weft.cli.login import login
from weft.cli.output import goal_outputs, pretty, print_json
from weft.cli.place import exists, opened, project_settings, url_of
from weft.cli.planning import known_steps
from weft.cli.steering import NOBODY, is_taken_up
from weft.core import commands as c
from weft.core import values
from weft.core.graph.starting import GOAL
from weft.core.ids import RunId
from weft.core.questions import STARTED_BY
from weft.core.visible import visible
from weft.errors import UnknownWorkflow, UsageError
from weft.runtime.programs import read_graph


class Wish(msgspec.Struct, frozen=True):
    """What ``weft run`` was asked for: ``[FILE] WORKFLOW [KEY=VALUE]...`` and its options."""

    words: Sequence[str]
    app: str | None
    source: str | None
    id: str | None

    def parts(self) -> tuple[str, str, Sequence[str]]:
        """The file with the app, the workflow, its arguments. Raises UsageError."""
        settled = self.app or project_settings().get("app")
        first, *rest = self.words
        if settled is None or (rest and "=" not in rest[0]) or _is_file(first):
            if not rest or "=" in rest[0]:
                raise UsageError(
                    f"weft run {first} names no {'workflow' if _is_file(first) else 'file'}.",
                    hint="weft run app.py order order_id=o-1; without a file where --app or [tool.weft] app has it",
                )
            return first, rest[0], rest[1:]
        return settled, first, rest


def _is_file(word: str) -> bool:
    return Path(word.partition(":")[0]).suffix == ".py"


def run_here(wish: Wish, *, url: str | None, json: bool) -> None:
    """What ``app.run`` does, from the command line."""
    file, workflow, words = wish.parts()
    loaded = load_app(file, "weft run")
    if url is not None:
        loaded.app.url = url
    found = workflow_of(loaded, workflow)
    arguments = given(words, wish.source, _reading(found, loaded.app))
    loaded.app.notices = LiveNotices
    result = loaded.app.run(found, arguments, id=wish.id)
    raw = found.result.encode(result, what=f"{workflow} returned")
    if isinstance(result, Facts):
        gives = {goal for goal in result.returned if (step := loaded.app.planned_step(goal)) and step.gives}
        raw = values.encode(goal_outputs(result.result, result.returned, gives), what=f"{workflow} gave")
    if json:
        print_json(values.decode(raw))
    else:
        print(visible(pretty(raw)) if sys.stdout.isatty() else pretty(raw))


async def start_elsewhere(
    workflow: str, *, words: Sequence[str], source: str | None, id: str | None, url: str | None, app: str | None
) -> None:
    """Put a new run into the store. With an app its arguments are checked here, else where it runs."""
    target = app or project_settings().get("app")
    loaded = load_app(target, "weft start") if target else None
    read = None
    if loaded is not None:
        with contextlib.suppress(UnknownWorkflow):
            read = _reading(loaded.workflow(workflow), loaded.app)
    arguments = given(words, source, read)
    address = url_of(url, app, loaded)
    async with opened(address, create=True) as door:
        run_id = await _start(address, workflow, arguments, id, loaded)
        print(run_id, flush=True)
        if not await is_taken_up(door, await door.row(RunId(run_id))):
            say(NOBODY)


async def _start(url: str, workflow: str, arguments: dict[str, Any], id: str | None, loaded: Loaded | None) -> str:
    name = login()
    who = {STARTED_BY: name} if name else {}
    async with Client(url) as client:
        if loaded is None:
            return (await client.start(workflow, arguments, id=id, attributes=who)).id
        # The app speaks through the client's door: it knows the workflow's version, its timeout and its types.
        loaded.app.bind(client.door)
        try:
            return (await loaded.app.start(workflow, arguments, id=id, attributes=who)).id
        finally:
            loaded.app.bind(None)


async def start_goals(
    goals: Sequence[str], *, words: Sequence[str], source: str | None, id: str | None, url: str | None, app: str | None
) -> None:
    """Put a run for goals into the store. With an app it is planned here, else where it runs."""
    async with known_steps(url, app, "weft start", create=True) as known:
        if known.door is None:
            raise UsageError(f"{known.address} keeps nothing, so nobody would see the run.", hint="Name a store: --url")
        given = {} if source is None else dict(read_object(source))
        for fact, text in pairs(words).items():
            given[fact] = by_type(known.group.planner.fact_type(fact))(text)
        attributes = {STARTED_BY: name} if (name := login()) else {}
        if isinstance(known.group, App):
            known.group.bind(known.door)
            try:
                wanted = known.group.achievement(goals, given)
                run_id = (await known.group.launch(wanted, id, attributes=attributes))[1].id
            finally:
                known.group.bind(None)
        else:
            start = c.StartGoal(
                run_id=check_run_id(id) if id is not None else f"{GOAL}-{known.door.ids.new()}",
                workflow=GOAL,
                style="goal",
                input=Raw(values.encode(given, what="the goals got")),
                goals=list(goals),
                attributes=attributes,
            )
            run_id = (await known.door.start(start, chosen=id is not None)).id
        print(run_id, flush=True)
        if not await is_taken_up(known.door, await known.door.row(RunId(run_id))):
            say(NOBODY)


def workflow_of(loaded: Loaded, name: str) -> Runnable[Any]:
    """A workflow of the app, or the newest graph of this name in its store. Raises UnknownWorkflow."""
    try:
        return loaded.workflow(name)
    except UnknownWorkflow:
        stored = asyncio.run(_stored_graph(loaded.app.url, name))
        if stored is None:
            raise
        return loaded.app.graph(stored)


async def _stored_graph(url: str, name: str) -> dict[str, Any] | None:
    if url.startswith("memory:") or not exists(url):
        return None
    async with opened(url) as door:
        versions = [one for one in await door.store.definitions.versions(name) if one.style == "graph"]
    return dict(read_graph(versions[-1]).source) if versions else None


def _reading(found: Runnable[Any], app: App) -> Read:
    """How words become arguments: as the workflow declares them, in every style."""
    if isinstance(found, Workflow):
        return by_signature(found.signature)
    if isinstance(found, Graph):
        return by_schema(found.loaded.graph.input)
    return lambda fact, text: by_type(app.planner.fact_type(fact))(text)
