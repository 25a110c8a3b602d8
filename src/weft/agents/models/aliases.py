"""Aliases: the names under which a program knows its models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from weft.agents.models.prices import Prices
from weft.core.events import Policy
from weft.core.findings import did_you_mean
from weft.errors import BadValue, UsageError
from weft.ports.tasks import KeyLimit
from weft.steps.secrets import Secret

SUPPORTS = ("tools", "schema", "stream")
OWN_FIELDS = (
    *("model", "messages", "input", "tools", "functions", "stream", "stream_options", "store", "include", "n"),
    *("previous_response_id", "conversation", "background"),
)
"""Fields of a request that options cannot set: policies, prices and recorded conversations depend on them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_request_options(whose: str, options: Mapping[str, Any]) -> None:
    """Raise BadValue if options set a field of requests that Weft writes itself."""
    for name in options:
        if name in OWN_FIELDS:
            raise BadValue(
                f"The options of {whose} cannot set {name}: Weft writes this field of each request itself.",
                hint="Leave it out. Another model is another alias: app.model(...).",
                code="value.bad_policy",
            )


class ModelAlias(msgspec.Struct, frozen=True, kw_only=True):
    """A model, as the program or the project names it."""

    name: str
    url: str
    """Where its API begins, such as ``https://api.openai.com/v1``."""
    model: str
    """The provider's name of the model."""
    policy: Policy
    """The retries, the timeout and the queue of its calls."""
    timeout_ms: int
    """How long one call may take, with all of its answer."""
    key: Secret | None = None
    api: str = "chat"
    context: int | None = None
    """How many tokens a request and its answer may have together; None if that is not known."""
    output: int = 4_096
    """How many tokens an answer may have."""
    prices: Prices | None = None
    fallback: tuple[str, ...] = ()
    """Who is asked instead, in this order, if this model is unavailable."""
    limit: KeyLimit | None = None
    options: Mapping[str, Any] = {}
    cache_ms: int | None = None
    """For how long equal requests are answered from the cache. 0 means for ever, None means never."""
    supports: tuple[str, ...] = SUPPORTS

    @property
    def queue(self) -> str:
        """The queue of its calls."""
        return self.policy.queue


def check_alias(name: object) -> str:
    """Return the name of an alias. Raises BadValue if it cannot be one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadValue(
            f"A model cannot be called {str(name)[:80]!r}.",
            hint='Use up to 64 letters, digits, dots, dashes and underscores: "fast", "gpt-5-mini".',
        )
    return name


def check_url(name: str, url: object) -> str:
    """Return the URL of a model's API, without a slash at its end. Raises BadValue."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        is_valid = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        has_extra = parts is not None and bool(parts.username or parts.password or parts.query or parts.fragment)
        _ = parts.port if parts is not None else None
    except ValueError:
        is_valid, has_extra = False, False
    if not is_valid or has_extra:
        raise BadValue(
            f"The url of the model {name} is not the address of an API.",
            hint='Write "https://host/v1", without user, password and query; the key goes into key=weft.Secret(...).',
        )
    return str(url).rstrip("/")


class ModelAliases:
    """The models that a host can ask, by name."""

    def __init__(self, own: Mapping[str, ModelAlias], more: Mapping[str, ModelAlias] | None = None) -> None:
        """``own`` are those of the program, which come first and may grow. ``more`` are those of the project."""
        self._own = own
        self._more = more or {}

    def find(self, name: str) -> ModelAlias | None:
        """Return the alias with this name, if there is one."""
        found = self._own.get(name)
        return found if found is not None else self._more.get(name)

    def get(self, name: str) -> ModelAlias:
        """Return the alias with this name. Raises UsageError."""
        found = self.find(name)
        if found is None:
            raise unknown_model(name, self.names())
        return found

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted({*self._own, *self._more})

    def all(self) -> list[ModelAlias]:
        """Return all aliases, by name."""
        return [self.get(name) for name in self.names()]

    def chain(self, name: str) -> list[str]:
        """Return an alias and all that are asked instead of it, in this order, each once. Raises UsageError."""
        found: dict[str, None] = {}
        waiting = [name]
        while waiting:
            alias = self.get(waiting.pop(0))
            if alias.name not in found:
                found[alias.name] = None
                waiting += alias.fallback
        return list(found)


def unknown_model(name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that no model has."""
    names = list(known)
    near = did_you_mean(name, names)
    there = f"The models are {', '.join(names)}." if names else 'Declare it: app.model("fast", url="https://…").'
    return UsageError(f'No model is called "{name}".', hint=f"{near} {there}".strip(), code="model.unknown")
