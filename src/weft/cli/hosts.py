"""Print the hosts of a store and what they own."""

from __future__ import annotations

from typing import Any

from weft.cli.output import SafeText, age_text, console, iso_time, print_json, print_table
from weft.cli.run_control import sees_hosts
from weft.cli.store_access import open_service, store_label, url_of
from weft.errors import NotAllowed
from weft.ports.hosts import HostRow
from weft.runtime.clock import SystemClock
from weft.stores import url_without_password

NAME_CHARS = 12
"""How many characters of a host's name are shown, which is enough to distinguish hosts."""


async def print_hosts(*, url: str | None, app: str | None, json: bool) -> None:
    """Print all hosts with what each owns. A dead host is listed until others have claimed its runs."""
    address = url_of(url, app)
    async with open_service(address) as service:
        if not sees_hosts(service):
            raise NotAllowed("The hosts concern all tenants.", hint="Use a key without a tenant.")
        hosts = await service.store.hosts.list_all()
    if json:
        print_json({"store": url_without_password(address), "hosts": [_host_document(host) for host in hosts]})
        return
    out = console()
    if not hosts:
        out.print(f"No hosts. Store: {store_label(address)}. weft serve app.py starts one.")
        return
    now = SystemClock().now_ms()
    print_table(out, ("HOST", "WHERE", "UP", "SEEN", "RUNS", "TASKS", "FOR"), [_host_line(host, now) for host in hosts])
    out.print(f"[dim]Store: {store_label(address)}.[/dim]")


def _host_line(host: HostRow, now: int) -> tuple[str | SafeText, ...]:
    about = host.about
    where = f"{about['machine']}:{about['pid']}" if "machine" in about and "pid" in about else ""
    since = about.get("since")
    seen = SafeText("gone", style="red") if host.gone else SafeText(f"{age_text(host.silent_ms)} ago")
    purposes = [*about.get("workflows", ()), *(f"queue {queue}" for queue in about.get("queues", ()))]
    up = age_text(now - since) if isinstance(since, int) else ""
    return host.host[-NAME_CHARS:], where, up, seen, f"{host.runs:,}", f"{host.tasks:,}", ", ".join(map(str, purposes))


def _host_document(host: HostRow) -> dict[str, Any]:
    return {
        "host": host.host,
        **{name: value for name, value in host.about.items() if name != "since"},
        "since": iso_time(host.about.get("since")),
        "lease_ms": host.lease_ms,
        "silent_ms": host.silent_ms,
        "gone": host.gone,
        "runs": host.runs,
        "tasks": host.tasks,
    }
