"""What an app uses a Redis server for: as an aid, or also for the hot path. Nothing is connected here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from weft.errors import UsageError
from weft.extras import require
from weft.settings import hot_name, redis_url
from weft.stores.hot.address import redis_address
from weft.stores.hot.policy import hot_policy
from weft.stores.urls import url_without_password

LEASE_SECONDS = 5.0
POSTGRES = ("postgresql", "postgres")


class RedisUse(msgspec.Struct, frozen=True, kw_only=True):
    """A Redis server, and what it is for."""

    url: str
    hot: str = ""
    """The policy of the hot path, such as "event"; empty if the server is only an aid."""
    lease_seconds: float = LEASE_SECONDS
    """The lease of the host in this process. An entry that takes longer than half of it has failed."""
    heard: Callable[[], None] | None = None
    """Called when another process says that it has written to the store."""

    @property
    def role(self) -> Literal["hints", "hot"]:
        return "hot" if self.hot else "hints"


def named_redis(redis: str | None, hot: str | None) -> tuple[str | None, str | None]:
    """Check the names in code, which others may complete later, and return them. Raises UsageError."""
    if redis is not None:
        redis_address(redis)
    if hot is not None:
        hot_policy(hot)
    return redis, hot


def redis_use(redis: str | None = None, hot: str | None = None, *, store: str) -> RedisUse | None:
    """Return the server that the code names, else the environment, else the project; None if none does.

    ``store`` is the URL of the store. Raises UsageError if the settings do not fit.
    """
    url, policy = redis or redis_url(), hot or hot_name()
    if policy:
        _check_hot(policy, url, store)
    if not url:
        return None
    redis_address(url)
    require("redis", "A Redis server")
    return RedisUse(url=url, hot=policy)


def redis_hints() -> RedisUse | None:
    """Return the server for a process that hosts no runs; None if the settings name none. Raises UsageError."""
    url = redis_url()
    if not url:
        return None
    redis_address(url)
    require("redis", "A Redis server")
    return RedisUse(url=url)


def is_postgres(store: str) -> bool:
    """Return whether the URL of a store names Postgres, whose processes need a server to wake each other."""
    return store.partition("://")[0] in POSTGRES


def _check_hot(policy: str, redis: str, store: str) -> None:
    hot_policy(policy)
    if not redis:
        raise UsageError(
            f"hot={policy!r} needs a Redis server, which holds steps until they are in Postgres.",
            hint='Name one: redis="redis://host:6379", WEFT_REDIS, or [tool.weft] redis. Or leave out `hot`.',
        )
    if not is_postgres(store):
        raise UsageError(
            f"hot={policy!r} needs a store in Postgres; the runs are in {url_without_password(store)}.",
            hint='Leave out `hot`. On one machine, durability="fast" makes commits quick without a Redis server.',
        )
