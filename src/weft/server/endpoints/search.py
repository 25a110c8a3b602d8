"""Search in one field: runs, workflows, steps and open questions."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.observe.questions import RUNS_PER_PAGE, open_questions_of, runs_that_ask
from weft.observe.run_search import RunSearch, find_runs
from weft.ports.run_query import RunQuery
from weft.runtime.versions import VersionService
from weft.server import views
from weft.server.request import ApiCall

FOUND_MAX = 10
"""How many of each kind are returned, unless told otherwise."""


class SearchQuery(views.Form, frozen=True, kw_only=True):
    """What to search for."""

    q: Annotated[str, Meta(max_length=200)] = ""
    """The beginning of the id of a run; a part of the name of a workflow or step, or of the title of a question.

    Without it, nothing is found.
    """
    limit: Annotated[int, Meta(ge=1, le=50)] = FOUND_MAX
    """How many of each kind to return."""


class FoundRun(msgspec.Struct, frozen=True):
    id: str
    workflow: str
    status: views.Status


class FoundQuestion(msgspec.Struct, frozen=True):
    id: str
    title: str
    run: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, of each kind the first few. Questions are looked for among the newest runs that ask."""

    runs: list[FoundRun]
    workflows: list[str]
    steps: list[str]
    questions: list[FoundQuestion]


async def search(call: ApiCall) -> Found:
    """Return the runs, workflows, steps and open questions that match a text."""
    asked = call.query_as(SearchQuery)
    if not asked.q:
        return Found(runs=[], workflows=[], steps=[], questions=[])
    return Found(
        runs=await _runs(call, asked),
        workflows=await _workflows(call, asked),
        steps=_steps(call, asked),
        questions=await _questions(call, asked),
    )


async def _runs(call: ApiCall, asked: SearchQuery) -> list[FoundRun]:
    query = RunQuery(id_prefix=asked.q, internal=True, limit=asked.limit)
    page = await find_runs(call.service, RunSearch(query=query))
    return [FoundRun(row.id, row.workflow, row.status) for row in page.rows]  # type: ignore[arg-type]


async def _workflows(call: ApiCall, asked: SearchQuery) -> list[str]:
    hosted = {(one.name, one.version): one.style for one in call.services.hosted.workflows()}
    versions = await VersionService(call.service).list(hosted=hosted)
    return _names_with([one.name for one in versions], asked)


def _steps(call: ApiCall, asked: SearchQuery) -> list[str]:
    keeper, local = call.services.runs.steps, call.service.local
    planned = [step.id for step in keeper.planned()] if keeper is not None else []
    return _names_with([*planned, *(local.catalogue.steps() if local is not None else ())], asked)


async def _questions(call: ApiCall, asked: SearchQuery) -> list[FoundQuestion]:
    page = await runs_that_ask(call.service, limit=RUNS_PER_PAGE)
    found: list[FoundQuestion] = []
    for row in page.rows:
        for item in await open_questions_of(call.service, row):
            if asked.q.casefold() in item.question.title.casefold():
                found.append(FoundQuestion(item.id, item.question.title, row.id))  # noqa: PERF401 - it stops early
        if len(found) >= asked.limit:
            break
    return found[: asked.limit]


def _names_with(names: list[str], asked: SearchQuery) -> list[str]:
    """Return the names with a text in them, those that begin with it first."""
    wanted = asked.q.casefold()
    found = {name for name in names if wanted in name.casefold()}
    return sorted(found, key=lambda name: (not name.casefold().startswith(wanted), name))[: asked.limit]
