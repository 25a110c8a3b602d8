"""What a storm left behind, judged by the ledger and the tables alone; no engine is asked for its opinion."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

TAKEOVER_SECONDS_MAX = 10.0
CLOCK_MS = 25
"""The ledger has the machine's own time; the log has the server's, as hosts measured it: wrong by half the way of a
heartbeat at most, which takes its time on a machine that is busy."""

_RUNS = "SELECT num, id, uid, status, ended_at FROM runs"
_EVENTS = "SELECT run, seq, at, body FROM events ORDER BY run, seq"
_SUCCEEDED = "task_succeeded"
_ENDS = ("run_completed", "run_failed", "run_cancelled")


class Span(msgspec.Struct, frozen=True):
    """From when to when, in seconds since the storm began."""

    start: float
    end: float

    def shared(self, other: Span) -> float:
        """For how long both were."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))


class Findings(msgspec.Struct):
    """What happened, and what is wrong with it."""

    seconds: float = 0.0
    kills: int = 0
    frozen: list[Span] = []
    outages: list[Span] = []
    adopted: list[Span] = []
    """Of every host that was killed and had runs: from its death until the last of them was in other hands."""
    runs: int = 0
    events: int = 0
    effects: int = 0
    again: int = 0
    """Effects that came again because nothing of the first was recorded: at least once, under the same key."""
    losses: int = 0
    lost: list[str] = []
    repeated: list[str] = []
    stuck: list[str] = []
    torn: list[str] = []
    broken: list[str] = []
    """Errors in the logs of hosts that are nobody's weather."""

    def takeover(self, span: Span) -> float:
        """How long a dead host kept its runs while the server was there: its own absence is nobody's fault."""
        return span.end - span.start - sum(span.shared(outage) for outage in self.outages)

    def takeovers(self) -> list[float]:
        return [self.takeover(span) for span in self.adopted]

    def is_clean(self) -> bool:
        late = [took for took in self.takeovers() if took > TAKEOVER_SECONDS_MAX]
        return not (self.lost or self.repeated or self.stuck or self.torn or self.broken or late)

    def summary(self) -> dict[str, Any]:
        took = self.takeovers()
        return {
            "seconds": round(self.seconds, 1),
            "runs": self.runs,
            "events": self.events,
            "kills": self.kills,
            "freezes": [_shown(span) for span in self.frozen],
            "restarts": [_shown(span) for span in self.outages],
            "effects": self.effects,
            "effects_again_unrecorded": self.again,
            "tasks_lost_and_handed_out_again": self.losses,
            "lost": len(self.lost),
            "repeated_after_recorded": len(self.repeated),
            "stuck": len(self.stuck),
            "torn": len(self.torn),
            "internal_errors": len(self.broken),
            "takeover_seconds": {
                "dead_hosts_with_runs": len(took),
                "median": round(statistics.median(took), 2) if took else None,
                "slowest": round(max(took), 2) if took else None,
                "slowest_were": [_shown(span) for span in sorted(self.adopted, key=self.takeover)[-3:]],
            },
            "clean": self.is_clean(),
            "examples": [*self.lost[:5], *self.repeated[:5], *self.stuck[:5], *self.torn[:5], *self.broken[:5]],
        }


def _shown(span: Span) -> str:
    return f"{span.start:.1f} to {span.end:.1f} s"


async def judge(findings: Findings, url: str, folder: Path, wanted: int) -> None:
    """Compare what was acknowledged, recorded and done."""
    runs, rows = _of_file(url) if url.startswith("sqlite:") else await _of_server(url)
    logs: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        event = {**json.loads(row["body"]), "seq": row["seq"], "at_ms": row["at"]}
        logs.setdefault(row["run"], []).append(event)
    findings.runs = len(runs)
    findings.events = sum(map(len, logs.values()))
    _judge_runs(findings, runs, wanted)
    reasons = {row["id"]: _reason(logs.get(row["num"], [])) for row in runs}
    findings.stuck += [f"{row['id']} is {row['status']}{reasons[row['id']]}" for row in runs if _is_stuck(row)]
    for row in runs:
        _judge_log(findings, row["id"], logs.get(row["num"], []))
    _judge_effects(findings, logs, _effects(folder))
    findings.broken += _errors(folder)


async def _of_server(url: str) -> tuple[Sequence[Any], Sequence[Any]]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    try:
        return await connection.fetch(_RUNS), await connection.fetch(_EVENTS)
    finally:
        await connection.close()


def _of_file(url: str) -> tuple[Sequence[Any], Sequence[Any]]:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return connection.execute(_RUNS).fetchall(), connection.execute(_EVENTS).fetchall()


def _judge_runs(findings: Findings, runs: Sequence[Any], wanted: int) -> None:
    """Every start that was acknowledged is there and has come to its end."""
    known = {row["id"] for row in runs}
    for n in range(wanted):
        run = f"{('order', 'packing', 'shipping')[n % 3]}-{n}"
        if run not in known:
            findings.lost.append(f"{run} was acknowledged and is not there")


def _is_stuck(row: Any) -> bool:
    return bool(row["status"] != "completed")


def _reason(log: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f": {event['failure'].get('message')}" for event in log if event["kind"] == "run_failed")


def _judge_log(findings: Findings, run: str, log: Sequence[Mapping[str, Any]]) -> None:
    if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
        findings.torn.append(f"{run}: its events are not numbered without a gap")
    ends = [event for event in log if event["kind"] in _ENDS]
    if len(ends) != 1 or log[-1] is not ends[0]:
        findings.torn.append(f"{run} ended {len(ends)} times")
    findings.losses += sum(event["kind"] == "task_lost" for event in log)
    if run.startswith("order-") and "." not in run:
        told = [event for event in log if event["kind"] == "message_received"]
        if len(told) != 1:
            findings.lost.append(f"{run} received its one message {len(told)} times")


def _judge_effects(
    findings: Findings, logs: Mapping[int, Sequence[Mapping[str, Any]]], effects: Sequence[tuple[int, str]]
) -> None:
    """What is recorded was done, and was not done again after it was recorded."""
    recorded: dict[str, int] = {}
    failures: Counter[str] = Counter()
    for log in logs.values():
        keys = {event["task"]: _key_in(event["output"]) for event in log if event["kind"] == _SUCCEEDED}
        for event in log:
            if event["kind"] == _SUCCEEDED:
                key = keys[event["task"]]
                if key in recorded:
                    findings.repeated.append(f"{key} is recorded twice")
                recorded[key] = event["at_ms"]
            elif event["kind"] == "task_failed":
                failures[keys.get(event["task"], "")] += 1
    done: dict[str, list[int]] = {}
    for at_ms, key in effects:
        done.setdefault(key, []).append(at_ms)
    findings.effects = len(effects)
    findings.lost += [f"{key} is recorded and was never done" for key in recorded if key not in done]
    for key, times in done.items():
        more = len(times) - 1 - failures[key]
        findings.again += max(0, more)
        late = max(times) - recorded.get(key, max(times))
        if more > 0 and late > CLOCK_MS:
            findings.repeated.append(f"{key} was done again {late} ms after its success was recorded")


def _key_in(output: Any) -> str:
    """The key that a step returned, wherever its style puts it."""
    if isinstance(output, dict):
        if "key" in output:
            return str(output["key"])
        return _key_in(output["order"])
    raise AssertionError(f"{output!r} holds no key")


def _effects(folder: Path) -> list[tuple[int, str]]:
    found = []
    for file in folder.glob("ledger-*.txt"):
        for line in file.read_text().splitlines():
            at_ms, key = line.split(" ", 1)
            found.append((int(at_ms), key))
    return found


def _errors(folder: Path) -> list[str]:
    """The last lines of tracebacks that hosts left."""
    found = []
    for file in sorted(folder.glob("host-*.log")):
        _, *traces = file.read_text(errors="replace").split("Traceback (most recent call last):\n")
        for trace in traces:
            ends = (line for line in trace.splitlines() if line and not line.startswith(" "))
            found.append(f"{file.name}: {next(ends, 'cut off')}")
    return found
