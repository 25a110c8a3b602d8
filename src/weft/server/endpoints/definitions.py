"""List workflows with their versions and tags, and the node types for graphs."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core import values
from weft.core.code.locations import check_name
from weft.errors import NotFound
from weft.observe.stored_workflows import stored_workflows
from weft.ports.store import Definition
from weft.runtime.orders import stored_workflow
from weft.runtime.programs import read_graph
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.hosted_app import HostedWorkflow
from weft.server.request import ApiCall
from weft.steps.node_types import node_types


async def list_workflows(call: ApiCall) -> views.Workflows:
    """Return all versions of all workflows, both those hosted here and those in the store."""
    return await _list(call, None)


async def list_versions(call: ApiCall) -> views.Workflows:
    """Return all versions of one workflow. Raises NotFound."""
    name = call.parameters["name"]
    page = await _list(call, name)
    if not page.workflows and page.cursor is None and call.query_as(views.PageQuery).cursor is None:
        raise NotFound(f"There is no workflow {name[:60]!r}.")
    return page


async def _list(call: ApiCall, name: str | None) -> views.Workflows:
    query = call.query_as(views.PageQuery)
    stored = {(one.name, one.version): one for one in await stored_workflows(call.service.store.definitions, name)}
    hosted = {(one.name, one.version): one for one in call.services.hosted.workflows() if name in {None, one.name}}
    page, cursor = cut_page(sorted({*stored, *hosted}), query.limit, query.cursor)
    tags = {known: await call.service.store.definitions.tags(known) for known, _ in page}
    views_of_page = [
        _view(hosted.get(key), stored.get(key), [tag for tag, version in tags[key[0]].items() if version == key[1]])
        for key in page
    ]
    return views.Workflows(views_of_page, cursor)


def _view(hosted: HostedWorkflow | None, stored: Definition | None, tags: Sequence[str]) -> views.WorkflowView:
    known = hosted or stored
    assert known is not None
    return views.WorkflowView(
        name=known.name,
        version=known.version,
        style=known.style,
        hosted=hosted is not None,
        description=hosted.description if hosted is not None else "",
        created_at=views.required_moment(stored.created_at) if stored is not None else None,
        tags=list(tags),
    )


async def show_version(call: ApiCall) -> views.WorkflowDetail:
    """Return one version, by its name or a tag, with its input schema and document. Raises NotFound."""
    name, version = call.parameters["name"], call.parameters["version"]
    definitions = call.service.store.definitions
    stored = await stored_workflow(definitions, name, version)
    actual_version = stored.version if stored is not None else version
    hosted = next(
        (one for one in call.services.hosted.workflows() if (one.name, one.version) == (name, actual_version)), None
    )
    if stored is None and hosted is None:
        raise NotFound(f"{name[:60]} has no version {version[:60]!r}.")
    tags = await definitions.tags(name)
    view = _view(hosted, stored, [tag for tag, tagged in tags.items() if tagged == actual_version])
    graph = read_graph(stored) if stored is not None else None
    schema = hosted.input if hosted is not None else graph.graph.input if graph is not None else None
    return views.WorkflowDetail(
        **{field: getattr(view, field) for field in view.__struct_fields__},
        input=dict(schema) if schema is not None else None,
        source=graph.source if graph is not None else None,
    )


async def put_tag(call: ApiCall) -> views.Tagged:
    """Set a tag to a version."""
    name, tag = call.parameters["name"], call.parameters["tag"]
    version = call.body_as(views.NewTag).version
    values.encode([name, version], what="the tag has")
    await call.service.store.definitions.tag(name, check_name(tag), version)
    return views.Tagged(name, tag, version)


async def list_node_types(call: ApiCall) -> views.NodeTypes:
    """Return the node types that packages and this program have added."""
    query = call.query_as(views.PageQuery)
    page, cursor = cut_page(sorted(node_types().values(), key=lambda one: one.name), query.limit, query.cursor)
    return views.NodeTypes([views.NodeTypeView(one.name, one.description, one.schema()) for one in page], cursor)
