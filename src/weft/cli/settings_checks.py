"""Checks of ``weft doctor`` that read settings as a host does when it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.cli.checkup import DoctorLine, fail
from weft.errors import WeftError
from weft.runtime.log_limits import project_log_limits
from weft.runtime.patch_limits import project_patch_limits
from weft.runtime.retention_policy import project_retention_policy
from weft.runtime.tool_settings import project_tool_settings
from weft.stores import RedisUse
from weft.stores.redis_use import redis_use


def check_values(address: str) -> Iterator[DoctorLine]:
    """Read the settings as a host with this store does, and say which of them it refuses."""
    from weft.server.settings import public_url, read_jwt_settings, read_oidc_settings, read_webhook_settings
    from weft.steps.http.addresses import allowed_here
    from weft.steps.http.webhooks import webhooks_here

    readers: list[Callable[[], object]] = [
        project_retention_policy,
        project_log_limits,
        project_patch_limits,
        project_tool_settings,
        public_url,
        lambda: read_oidc_settings(read_jwt_settings()),
        read_webhook_settings,
        webhooks_here,
        allowed_here,
        lambda: redis_use(store=address),
    ]
    said: set[str] = set()
    for read in readers:
        try:
            read()
        except WeftError as error:
            if error.message not in said:  # the public URL belongs to several
                said.add(error.message)
                yield fail("settings", error.message, error.hint)


async def check_redis(use: RedisUse, address: str) -> list[DoctorLine]:
    """Check that the Redis server beside a store answers, and that it can be used as the settings say."""
    from weft.cli.checkup import ok, warn
    from weft.runtime.redis_watch import RedisWatch
    from weft.stores import open_store, wal_server
    from weft.stores.redis_use import is_postgres

    server = wal_server(open_store(address), use)
    watch = RedisWatch(server, use.hot, wakes=is_postgres(address))
    try:
        await watch.check()
    finally:
        await server.close()
    report = watch.report
    if report.used:
        return [ok("Redis", report.line())]
    return [warn("Redis", report.line(), "Start it, or correct WEFT_REDIS. Hosts work without it until it answers.")]
