"""Language models as people see them: what hosts say about them, and until when they are held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from weft.core.ids import Millis
from weft.ports.hosts import Hosts
from weft.ports.memos import Memos
from weft.runtime.held_models import held_until

if TYPE_CHECKING:
    from weft.agents.models.aliases import ModelAlias


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """A model."""

    name: str
    model: str
    """The provider's name of the model."""
    url: str
    api: str
    context: int | None = None
    output: int = 0
    prices: Mapping[str, str] | None = None
    """What a million tokens cost, and the currency."""
    fallback: Sequence[str] = ()
    supports: Sequence[str] = ()
    hosts: int = 0
    """How many living hosts can ask it."""
    held_until: Millis | None = None
    """Until when nobody asks it, because its provider said so."""


def model_view(alias: ModelAlias) -> ModelView:
    """Return a model as its program declares it. The key is left out, even its place."""
    prices = alias.prices
    return ModelView(
        name=alias.name,
        model=alias.model,
        url=alias.url,
        api=alias.api,
        context=alias.context,
        output=alias.output,
        prices=None
        if prices is None
        else {
            "input": str(prices.input),
            "output": str(prices.output),
            "cached": str(prices.cached),
            "currency": prices.currency,
        },
        fallback=alias.fallback,
        supports=alias.supports,
    )


def describe_models(aliases: Iterable[ModelAlias]) -> list[dict[str, Any]]:
    """Return models for the description of a host."""
    return [msgspec.to_builtins(model_view(alias)) for alias in aliases]


async def read_models(hosts: Hosts, memos: Memos, now: Millis, own: Iterable[ModelAlias] = ()) -> list[ModelView]:
    """Return the models of all living hosts, and those of an app, by name."""
    found = {alias.name: model_view(alias) for alias in own}
    counts: dict[str, int] = {}
    for host in await hosts.list_all():
        for described in host.about.get("models", ()) if not host.gone else ():
            view = _read_model_view(described)
            if view is not None:
                counts[view.name] = counts.get(view.name, 0) + 1
                found.setdefault(view.name, view)
    return [
        msgspec.structs.replace(found[name], hosts=counts.get(name, 0), held_until=await held_until(memos, name, now))
        for name in sorted(found)
    ]


def _read_model_view(described: Any) -> ModelView | None:
    try:
        return msgspec.convert(described, ModelView)
    except msgspec.ValidationError:
        return None  # a host of another release
