"""``weft doctor``: say what is wrong with this installation, without changing it and without printing secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

from weft.cli.checkup import DoctorLine, fail
from weft.cli.machine_checks import check_extras, check_packages, check_port, check_python, check_settings, check_web
from weft.cli.output import SafeText, console, print_json
from weft.cli.settings_checks import check_redis, check_values
from weft.cli.store_access import is_server, url_of
from weft.cli.store_checks import check_redis_server, check_store
from weft.core.plurals import pluralize
from weft.errors import WeftError
from weft.stores.redis_use import redis_use

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def examine(port: int, *, url: str | None, app: str | None, json: bool) -> bool:
    """Print what was found. Returns whether nothing has failed."""
    found = list(_findings(port, url, app))
    failed = sum(one.state == "fail" for one in found)
    if json:
        print_json({"ok": not failed, "checks": found})
        return not failed
    out = console()
    for one in found:
        out.print(SafeText.assemble((f"{one.state:<5}", STYLES[one.state]), (f"{one.check:<10}", "dim"), one.text))
        if one.todo:
            out.print(SafeText(f"{'':15}{one.todo}", style="cyan"))
    warned = sum(one.state == "warn" for one in found)
    out.print(f"{pluralize(len(found), 'check')}: {failed} failed, {pluralize(warned, 'warning')}.")
    return not failed


def _findings(port: int, url: str | None, app: str | None) -> Iterator[DoctorLine]:
    yield from _guarded("python", check_python)
    yield from _guarded("packages", check_packages)
    settings = list(_guarded("settings", check_settings))
    yield from settings
    if any(one.state == "fail" for one in settings):
        return  # nothing else can be looked up without them
    try:
        address = url_of(url, app)
    except WeftError as error:
        yield fail("store", error.message, error.hint)
        return
    yield from _guarded("extras", lambda: check_extras(address))
    if is_server(address):
        yield from _guarded("server", lambda: asyncio.run(check_redis_server(address)))
        return
    values = list(_guarded("settings", lambda: check_values(address)))
    yield from values
    yield from _guarded("web UI", check_web)
    yield from _guarded("port", lambda: check_port(port))
    yield from _guarded("store", lambda: asyncio.run(check_store(address)))
    if not values and (redis := redis_use(store=address)) is not None:
        yield from _guarded("Redis", lambda: asyncio.run(check_redis(redis, address)))


def _guarded(check: str, findings: Callable[[], Iterable[DoctorLine]]) -> Iterator[DoctorLine]:
    """Yield the findings of a check. A check that fails itself is a finding, too, and not the end of all others."""
    try:
        yield from list(findings())
    except WeftError as error:
        yield fail(check, error.message, error.hint)
    except Exception as error:  # noqa: BLE001 - a broken installation breaks checks, too
        yield fail(check, f"{type(error).__name__}: {error}", "WEFT_DEBUG=1 weft status shows more.")
