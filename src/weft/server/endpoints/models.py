"""The language models that hosts can ask."""

from __future__ import annotations

import msgspec

from weft.observe.models import ModelView, read_models
from weft.server import views
from weft.server.cursors import cut_page
from weft.server.request import ApiCall


class TokenPrices(msgspec.Struct, frozen=True, kw_only=True):
    """What a million tokens cost."""

    input: str
    output: str
    cached: str
    currency: str


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model."""

    name: str
    model: str
    """The provider's name of the model."""
    url: str
    api: str
    context: int | None
    output: int
    prices: TokenPrices | None
    fallback: list[str]
    supports: list[str]
    hosts: int
    """How many living hosts can ask it."""
    held_until: views.Moment | None
    """Until when nobody asks it, because its provider said so."""


class ModelList(msgspec.Struct, frozen=True):
    """A page of models."""

    models: list[ModelRow]
    cursor: str | None


async def list_models(call: ApiCall) -> ModelList:
    """Return a page of the models that living hosts can ask."""
    query = call.query_as(views.PageQuery)
    store = call.service.store
    found = await read_models(store.hosts, store.memos, call.service.clock.now_ms())
    page, cursor = cut_page(found, query.limit, query.cursor)
    return ModelList([_row(view) for view in page], cursor)


def _row(view: ModelView) -> ModelRow:
    return ModelRow(
        name=view.name,
        model=view.model,
        url=view.url,
        api=view.api,
        context=view.context,
        output=view.output,
        prices=TokenPrices(**view.prices) if view.prices is not None else None,
        fallback=list(view.fallback),
        supports=list(view.supports),
        hosts=view.hosts,
        held_until=views.api_time(view.held_until),
    )
