"""What the living hosts say about their Redis servers, for ``weft status``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.core.plurals import pluralize
from weft.ports.hosts import HostRow
from weft.ports.tasks import QueueRow
from weft.runtime.redis_watch import RedisReport


def redis_reports(hosts: Iterable[HostRow]) -> list[dict[str, Any]]:
    """Return the different reports of living hosts, each with the number of hosts that say the same.

    Bad answers are those of all these hosts.
    """
    found: dict[RedisReport, list[int]] = {}
    for host in hosts:
        about = host.about.get("redis")
        if host.gone or not isinstance(about, Mapping):
            continue
        report = msgspec.convert(about, RedisReport)
        found.setdefault(msgspec.structs.replace(report, bad_answers=0), []).append(report.bad_answers)
    return [
        {**msgspec.to_builtins(report), "bad_answers": sum(bad), "hosts": len(bad)} for report, bad in found.items()
    ]


def redis_line(report: Mapping[str, Any]) -> str:
    """Return a report in one line, for people."""
    line = msgspec.convert({name: value for name, value in report.items() if name != "hosts"}, RedisReport).line()
    return f"{pluralize(report['hosts'], 'host')}: {line}"


def stream_documents(queues: Iterable[QueueRow]) -> list[dict[str, Any]]:
    """Return the queues that are streams, for programs."""
    return [
        {"queue": row.queue, "published": row.running, "waiting": row.waiting} for row in queues if row.limits.stream
    ]


def stream_lines(streams: Sequence[Mapping[str, Any]], reports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each queue that is a stream, and what is wrong with them, for people."""
    lines = [f"{one['queue']}: {one['published']:,} published, {one['waiting']:,} waiting" for one in streams]
    if streams and not reports:
        lines.append("No host has Redis, so nothing is published: set WEFT_REDIS for at least one.")
    bad = sum(report["bad_answers"] for report in reports)
    if bad:
        lines.append(f"{pluralize(bad, 'answer')} could not be used since the hosts began; wf.bad has the last ones")
    problems = dict.fromkeys(report["streams_problem"] for report in reports if streams)
    return lines + [problem for problem in problems if problem]
