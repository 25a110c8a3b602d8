"""Workflows as screens show them: by name, with pictures, sources and differences of their versions."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal

import msgspec

from weft.errors import NotFound, Refused
from weft.observe.box_standing import BoxStanding
from weft.observe.pictures.drawn import DrawnPicture
from weft.observe.pictures.graphs import picture_of_graph
from weft.observe.pictures.model import Picture
from weft.observe.pictures.plans import picture_of_plan
from weft.observe.version_diff import Change, ComparedGraph, DiffLine, compare_graphs
from weft.observe.workflow_summary import NamedWorkflow, by_name, recent_runs
from weft.runtime.programs import is_graph, read_graph
from weft.runtime.versions import VersionDocument, VersionService
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.hosted_app import HostedWorkflow
from weft.server.request import ApiCall


class TaggedVersion(msgspec.Struct, frozen=True):
    """A tag and the version that it names."""

    tag: str
    version: str


class LastRun(msgspec.Struct, frozen=True):
    """The newest run of a workflow."""

    id: str
    status: views.Status
    created_at: views.Moment


class WorkflowSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow by name. Counts are exact up to 10,000; with ``more``, there are at least as many."""

    name: str
    style: str
    """``code``, ``graph`` or ``goal``; empty if it is code that no living host has."""
    description: str
    newest: str
    """The version that a start by name takes; without a host, the youngest."""
    versions: int
    tags: list[TaggedVersion]
    hosted: bool
    open_runs: int
    day_runs: int
    """How many runs began within a day."""
    day_failed: int
    """How many of these have failed."""
    more: bool
    median_seconds: float | None
    """How long the newest completed runs took."""
    last_run: LastRun | None


class WorkflowSummaries(msgspec.Struct, frozen=True):
    """A page of workflows, by name."""

    workflows: list[WorkflowSummary]
    cursor: str | None


class WorkflowAbout(WorkflowSummary, frozen=True, kw_only=True):
    """A workflow with what a start of its newest version takes."""

    input: dict[str, Any] | None
    """The JSON Schema of the input; null if it takes any facts, or if no host is known that has it."""
    where: str
    """The file and line of code that is hosted here, such as ``app.py:22``."""


class SummaryQuery(views.PageQuery, frozen=True, kw_only=True):
    """Which workflows to return."""

    q: str = ""
    """The beginning of the name."""


class VersionStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of a version did within a day: how many places of each box stand how, how often arrows were taken.

    With ``more``, only the newest of the runs were read.
    """

    runs: int
    more: bool
    boxes: dict[str, BoxStanding]
    arrows: dict[str, int]


class VersionSource(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a version. It is as its author wrote it if ``is_written``, and else made from the data.

    Code has no text here; ``where`` is its file and line if it is hosted here.
    """

    text: str
    is_written: bool
    language: Literal["yaml", "json", "python"]
    where: str


class VersionDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two versions of a graph: of their texts, in sentences, and in one picture of both."""

    a: str
    b: str
    equal: bool
    is_written: bool
    """Whether the lines are those of the texts as they were written. If one version has none, both texts are made from
    the stored documents."""
    lines: list[DiffLine]
    sentences: list[str]
    picture: DrawnPicture
    boxes: dict[str, Change]
    arrows: dict[str, Change]


# --- by name -----------------------------------------------------------------------------------------------------


async def list_summaries(call: ApiCall) -> WorkflowSummaries:
    """Return a page of workflows by name, with what their runs did lately."""
    query = call.query_as(SummaryQuery)
    found = [one for one in await _workflows(call) if one.name.startswith(query.q)]
    page, cursor = cut_page(found, query.limit, query.cursor)
    return WorkflowSummaries([WorkflowSummary(**await _fields(call, one)) for one in page], cursor)


async def show_about(call: ApiCall) -> WorkflowAbout:
    """Return one workflow with the schema of its input. Raises NotFound."""
    name = call.parameters["name"]
    found = await _workflows(call, name)
    if not found:
        raise NotFound(f"There is no workflow {name[:60]!r}.", hint="weft workflows")
    here = _hosted(call, name, found[0].newest.version)
    stored = await VersionService(call.service).get(name, found[0].newest.version, hosted=_styles(call))
    schema = here.input if here is not None else stored.input
    return WorkflowAbout(
        **await _fields(call, found[0]),
        input=dict(schema) if schema else None,
        where=here.where if here is not None else "",
    )


async def _workflows(call: ApiCall, name: str | None = None) -> list[NamedWorkflow]:
    versions = await VersionService(call.service).list(name, hosted=_styles(call))
    local = call.service.local
    callees = {one.name: local.catalogue.callee(one.name) for one in versions} if local is not None else {}
    return by_name(versions, {name: callee[0] for name, callee in callees.items() if callee is not None})


async def _fields(call: ApiCall, found: NamedWorkflow) -> dict[str, Any]:
    recent = await recent_runs(call.service, found.name)
    here = _hosted(call, found.name, found.newest.version)
    last = recent.last
    return {
        "name": found.name,
        "style": found.newest.style or next((one.style for one in found.versions if one.style), ""),
        "description": here.description if here is not None else "",
        "newest": found.newest.version,
        "versions": len(found.versions),
        "tags": [TaggedVersion(tag, one.version) for one in found.versions for tag in one.tags],
        "hosted": any(one.hosted for one in found.versions),
        "open_runs": recent.open.count,
        "day_runs": recent.day.count,
        "day_failed": recent.failed.count,
        "more": recent.open.more or recent.day.more or recent.failed.more,
        "median_seconds": recent.median_seconds,
        "last_run": LastRun(last.id, last.status, views.required_time(last.created_at)) if last is not None else None,  # type: ignore[arg-type]
    }


def _styles(call: ApiCall) -> dict[tuple[str, str], str]:
    return {(one.name, one.version): one.style for one in call.services.hosted.workflows()}


def _hosted(call: ApiCall, name: str, version: str) -> HostedWorkflow | None:
    found = [one for one in call.services.hosted.workflows() if (one.name, one.version) == (name, version)]
    return found[0] if found else None


# --- versions ----------------------------------------------------------------------------------------------------


async def show_picture(call: ApiCall) -> DrawnPicture:
    """Return the picture of a version: its graph, its plan, or what runs of its code recorded. Raises NotFound."""
    found = await _asked_version(call)
    picture = await _graph_picture(call, found) or await _recorded_picture(call, found)
    if picture is None:
        raise NotFound(
            f"There is no picture of {found.name} {found.version}: it had no run within a day.",
            hint="Code is drawn from what its runs record. Start one.",
        )
    return await call.services.viewed.drawn(picture)


async def _graph_picture(call: ApiCall, found: VersionDocument) -> Picture | None:
    stored = await call.service.store.definitions.get(found.name, found.version)
    if stored is not None and is_graph(stored):
        return picture_of_graph(read_graph(stored).graph)
    here = _hosted(call, found.name, found.version)
    if here is not None and here.goals:
        lacking = call.services.hosted.plan(here.goals, []).missing
        given = [fact for fact in lacking if "/" not in fact]  # what nothing provides, a start must give
        return picture_of_plan(call.services.hosted.plan(here.goals, given), title=found.name)
    return None


async def _recorded_picture(call: ApiCall, found: VersionDocument) -> Picture | None:
    return (await call.services.activity.of(call.service, found.name, found.version)).picture


async def show_standing(call: ApiCall) -> VersionStanding:
    """Return what the runs of a version did within a day. Raises NotFound."""
    found = await _asked_version(call)
    activity = await call.services.activity.of(call.service, found.name, found.version)
    return VersionStanding(runs=activity.runs, more=activity.more, boxes=activity.boxes, arrows=activity.arrows)


async def show_source(call: ApiCall) -> VersionSource:
    """Return the text of a version. Raises NotFound."""
    found = await _asked_version(call)
    if found.source is None:
        here = _hosted(call, found.name, found.version)
        return VersionSource(text="", is_written=False, language="python", where=here.where if here is not None else "")
    text = _version_text(found)
    is_json = text.lstrip().startswith("{")
    return VersionSource(text=text, is_written=bool(found.text), language="json" if is_json else "yaml", where="")


async def show_diff(call: ApiCall) -> VersionDiff:
    """Return the differences of two versions of a graph. Raises NotFound, Refused."""
    a, b = await _asked_version(call, "a"), await _asked_version(call, "b")
    is_written = bool(a.text and b.text)
    sides = [await _compared(call, one, is_written=is_written) for one in (a, b)]
    local = call.service.local
    compare = partial(compare_graphs, sides[0], sides[1])  # in a thread, because it may be slow
    found = await local.in_thread(compare) if local is not None else compare()
    return VersionDiff(
        a=a.version,
        b=b.version,
        equal=a.source == b.source,
        is_written=is_written,
        lines=found.lines,
        sentences=found.sentences,
        picture=await call.services.viewed.drawn(found.picture),
        boxes=found.boxes,
        arrows=found.arrows,
    )


async def _compared(call: ApiCall, found: VersionDocument, *, is_written: bool) -> ComparedGraph:
    """Return one side. A text as it was written can only be compared with another one, not with one made from data."""
    stored = await call.service.store.definitions.get(found.name, found.version)
    if stored is None or not is_graph(stored) or found.source is None:
        raise Refused(
            f"{found.name} {found.version} is not a graph, so there are no documents to compare.",
            hint="Compare two runs instead: weft diff RUN RUN",
        )
    return ComparedGraph(
        graph=read_graph(stored).graph, source=found.source, text=found.text if is_written else _made(found)
    )


def _version_text(found: VersionDocument) -> str:
    """Return the text of a version as it was written, or made from its data."""
    return found.text or _made(found)


def _made(found: VersionDocument) -> str:
    return json.dumps(found.source, indent=2, ensure_ascii=False) + "\n"


async def _asked_version(call: ApiCall, parameter: str = "version") -> VersionDocument:
    name, version = call.parameters["name"], call.parameters[parameter]
    return await VersionService(call.service).get(name, version, hosted=_styles(call))
