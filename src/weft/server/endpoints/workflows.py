"""Workflows with their versions, and the tags that name versions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.errors import NotAllowed, NotFound
from weft.runtime.publication import PublishedVersion, WorkflowPatch
from weft.runtime.tag_views import TagMoves, TagView
from weft.runtime.version_refs import DEFAULT_TAG
from weft.runtime.versions import VersionDocument, VersionService, WorkflowVersion
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.hosted_app import HostedWorkflow
from weft.server.identity import AccessScope
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall


class WorkflowQuery(views.PageQuery, frozen=True, kw_only=True):
    all: bool = False
    """Also versions that only a patch of a run made."""


class WorkflowView(WorkflowVersion, frozen=True, kw_only=True):
    """A version of a workflow. ``hosted`` says whether it can be started here."""

    description: str


class WorkflowList(msgspec.Struct, frozen=True):
    workflows: list[WorkflowView]
    cursor: str | None


class WorkflowDetail(VersionDocument, frozen=True, kw_only=True):
    """One version of a workflow, with the schema of its input and its document, if it has one."""

    description: str
    input: dict[str, Any] | None


class TagList(msgspec.Struct, frozen=True):
    tags: list[TagView]
    cursor: str | None


class NewMove(views.Form, frozen=True, kw_only=True):
    version: views.Name
    reason: views.Text = ""
    by: views.Text = ""
    """Who moves it. Ignored if the request has an API key, which says it."""


class NewVersion(views.Form, frozen=True, kw_only=True):
    """A patch of a workflow: in ``patch`` operations, a document or a version, or in ``text`` a document as text."""

    tag: views.Name = DEFAULT_TAG
    patch: dict[str, Any] = msgspec.field(default_factory=dict)
    text: Annotated[str, Meta(max_length=1_048_576)] = ""
    reason: views.Text = ""
    by: views.Text = ""


class MovesQuery(views.Form, frozen=True, kw_only=True):
    upto: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    limit: views.Limit = 100


# --- versions ----------------------------------------------------------------------------------------------------


async def list_workflows(call: ApiCall) -> WorkflowList:
    """Return all versions of all workflows, both those hosted here and those in the store."""
    return await _list(call, None)


async def list_versions(call: ApiCall) -> WorkflowList:
    """Return all versions of one workflow. Raises NotFound."""
    name = call.parameters["name"]
    page = await _list(call, name)
    if not page.workflows and page.cursor is None and call.query_as(WorkflowQuery).cursor is None:
        raise NotFound(f"There is no workflow {name[:60]!r}.")
    return page


async def _list(call: ApiCall, name: str | None) -> WorkflowList:
    query = call.query_as(WorkflowQuery)
    hosted = _hosted(call)
    styles = {key: one.style for key, one in hosted.items()}
    found = await VersionService(call.service).list(name, all=query.all, hosted=styles)
    page, cursor = cut_page(found, query.limit, query.cursor)
    return WorkflowList([_described(one, hosted) for one in page], cursor)


async def show_version(call: ApiCall) -> WorkflowDetail:
    """Return one version with its input schema and document. Raises NotFound."""
    name, version = call.parameters["name"], call.parameters["version"]
    hosted = _hosted(call)
    styles = {key: one.style for key, one in hosted.items()}
    found = await VersionService(call.service).get(name, version, hosted=styles)
    here = hosted.get((name, version))
    schema = here.input if here is not None else found.input
    fields = {field: getattr(found, field) for field in found.__struct_fields__ if field != "input"}
    return WorkflowDetail(
        **fields, description=here.description if here is not None else "", input=dict(schema) if schema else None
    )


def _hosted(call: ApiCall) -> dict[tuple[str, str], HostedWorkflow]:
    return {(one.name, one.version): one for one in call.services.hosted.workflows()}


def _described(one: WorkflowVersion, hosted: dict[tuple[str, str], HostedWorkflow]) -> WorkflowView:
    here = hosted.get((one.name, one.version))
    fields = {field: getattr(one, field) for field in one.__struct_fields__}
    return WorkflowView(**fields, description=here.description if here is not None else "")


# --- tags --------------------------------------------------------------------------------------------------------


async def list_tags(call: ApiCall) -> TagList:
    """Return the tags of a workflow."""
    query = call.query_as(views.PageQuery)
    found = await VersionService(call.service).tags(call.parameters["name"])
    page, cursor = cut_page(found, query.limit, query.cursor)
    return TagList(page, cursor)


async def show_tag(call: ApiCall) -> TagMoves:
    """Return a tag with its moves. Raises NotFound."""
    query = call.query_as(MovesQuery)
    versions = VersionService(call.service)
    return await versions.history(*_name_and_tag(call), upto=query.upto, limit=query.limit)


async def put_tag(call: ApiCall) -> TagView:
    """Let a tag name a version."""
    new = call.body_as(NewMove)
    return await VersionService(call.service).tag(
        *_name_and_tag(call), new.version, by=call.by(new.by), reason=new.reason
    )


async def remove_tag(call: ApiCall) -> TagView:
    """Let a tag name nothing."""
    said = call.body_as(views.Remark)
    return await VersionService(call.service).remove_tag(*_name_and_tag(call), by=call.by(said.by), reason=said.reason)


async def undo_tag(call: ApiCall) -> TagView:
    """Take a tag back to where it was before its last move."""
    said = call.body_as(views.Remark)
    return await VersionService(call.service).undo_tag(*_name_and_tag(call), by=call.by(said.by), reason=said.reason)


async def redo_tag(call: ApiCall) -> TagView:
    """Repeat the move of a tag that was undone last."""
    said = call.body_as(views.Remark)
    return await VersionService(call.service).redo_tag(*_name_and_tag(call), by=call.by(said.by), reason=said.reason)


async def patch(call: ApiCall) -> PublishedVersion:
    """Make a version by a patch, and let a tag name it."""
    new = call.body_as(NewVersion)
    found = WorkflowPatch(patch=new.patch, text=new.text, by=call.by(new.by), reason=new.reason)
    found = msgspec.structs.replace(found, sets_changes=call.identity.may(AccessScope.ADMIN))
    try:
        return await VersionService(call.service).publish(call.parameters["name"], new.tag, found)
    except NotAllowed as error:
        raise RequestRefused(403, error.code, error.message, hint=error.hint) from None


def _name_and_tag(call: ApiCall) -> tuple[str, str]:
    return call.parameters["name"], call.parameters["tag"]
