"""What the interface explains: error codes, and the schemas of documents."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.errors import NotFound
from weft.goals import schema as steps_schemas
from weft.graphs import schema as graph_schemas
from weft.observe.error_pages import PAGES, page
from weft.server.request import ApiCall
from weft.steps.node_types import node_types


class HelpPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of an error code. ``text`` is what ``weft help CODE`` prints."""

    code: str
    what: str
    why: str
    todo: str
    text: str


async def show_page(call: ApiCall) -> HelpPage:
    """Return the page of an error code. Raises NotFound."""
    code = call.parameters["code"]
    found, text = PAGES.get(code), page(code)
    if found is None or text is None:
        raise NotFound(f"No error has the code {code[:60]!r}.", hint="weft help lists all codes.")
    return HelpPage(code=code, what=found.what, why=found.why, todo=found.todo, text=text)


async def graph_schema(_: ApiCall) -> dict[str, Any]:
    """Return the JSON Schema of graph documents, with the node types that are installed here."""
    return graph_schemas.document_schema(sorted(node_types()))


async def steps_schema(_: ApiCall) -> dict[str, Any]:
    """Return the JSON Schema of documents of steps."""
    return steps_schemas.document_schema()
