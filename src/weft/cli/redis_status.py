"""What the living hosts say about their Redis servers, for ``weft status``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from weft.core.plurals import pluralize
from weft.ports.hosts import HostRow
from weft.runtime.redis_watch import RedisReport


def redis_reports(hosts: Iterable[HostRow]) -> list[dict[str, Any]]:
    """Return the different reports of living hosts, each with the number of hosts that say the same."""
    found: dict[RedisReport, int] = {}
    for host in hosts:
        about = host.about.get("redis")
        if host.gone or not isinstance(about, Mapping):
            continue
        report = msgspec.convert(about, RedisReport)
        found[report] = found.get(report, 0) + 1
    return [{**msgspec.to_builtins(report), "hosts": count} for report, count in found.items()]


def redis_line(report: Mapping[str, Any]) -> str:
    """Return a report in one line, for people."""
    line = msgspec.convert({name: value for name, value in report.items() if name != "hosts"}, RedisReport).line()
    return f"{pluralize(report['hosts'], 'host')}: {line}"
