"""List the node types for graphs."""

from __future__ import annotations

from weft.server import views
from weft.server.cursors import cut_page
from weft.server.request import ApiCall
from weft.steps.node_types import node_types


async def list_node_types(call: ApiCall) -> views.NodeTypes:
    """Return the node types that packages and this program have added."""
    query = call.query_as(views.PageQuery)
    page, cursor = cut_page(sorted(node_types().values(), key=lambda one: one.name), query.limit, query.cursor)
    return views.NodeTypes([views.NodeTypeView(one.name, one.description, one.schema()) for one in page], cursor)
