"""What real servers left behind, judged by the ledger outside and by the tables of Postgres alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec

from tests.hot.proof_host import CHARGE, HOPS

TOTAL = sum(range(HOPS))


class Line(msgspec.Struct, frozen=True):
    """A line of the ledger: a step of a run began."""

    at: float
    run: str
    number: int
    key: str


class LostHop(msgspec.Struct, frozen=True):
    """A step that ran again after a later step of its run had begun, so its result was acknowledged before."""

    run: str
    number: int
    acknowledged_at: float
    """When the step after it began: the result was acknowledged at this time at the latest."""
    again_at: float


class Verdict(msgspec.Struct):
    """What was found. All lists but the first must be empty, and the first too where nothing may be lost."""

    hops: list[LostHop] = []
    repeated: int = 0
    """Steps that ran again although no later step had begun: in hand when their host died."""
    tasks_lost: int = 0
    """Tasks that logs name as taken from a host which was dead, or seemed so."""
    commands: list[str] = []
    """Starts and messages that were answered and are not there."""
    stuck: list[str] = []
    wrong: list[str] = []
    """Results, keys and irreversible steps that are not as they must be."""
    losses: int = 0
    """How many losses Weft itself has recorded."""

    def is_sound(self) -> bool:
        return not (self.commands or self.stuck or self.wrong)

    def summary(self) -> str:
        oldest = max((hop.again_at - hop.acknowledged_at for hop in self.hops), default=0.0)
        examples = [*self.commands[:3], *self.stuck[:3], *self.wrong[:3]]
        return (
            f"{len(self.hops)} hops lost (run again up to {oldest:.1f} s later), {self.losses} losses recorded, "
            f"{self.repeated} steps in hand repeated, {len(self.commands)} answered commands lost, "
            f"{len(self.stuck)} stuck, {len(self.wrong)} wrong {examples or ''}"
        )


async def judge(url: str, ledger: Path, started: Mapping[str, int], told: Sequence[str]) -> Verdict:
    """Compare. ``started`` are the runs whose start was answered, with the number that each is told; ``told`` those
    whose message was answered.
    """
    lines = read_ledger(ledger)
    verdict = Verdict()
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"}, timeout=120)
    try:
        rows = {row["id"]: row for row in await connection.fetch("SELECT num, id, status FROM runs")}
        events: dict[int, list[dict[str, Any]]] = {}
        for row in await connection.fetch("SELECT run, seq, body FROM events ORDER BY run, seq"):
            events.setdefault(row["run"], []).append({**json.loads(row["body"]), "seq": row["seq"]})
        verdict.losses = await connection.fetchval("SELECT count(*) FROM losses")
    finally:
        await connection.close()
    for run, number in started.items():
        if run not in rows:
            verdict.commands.append(f"{run} was started and is not there")
            continue
        _judge_run(verdict, run, rows[run]["status"], events.get(rows[run]["num"], []), number if run in told else None)
    _judge_ledger(verdict, lines)
    return verdict


def read_ledger(path: Path) -> list[Line]:
    """Return the lines, in the order in which they were written."""
    lines = []
    for text in path.read_text().splitlines():
        at, run, number, key = text.split(" ", 3)
        lines.append(Line(float(at), run, int(number), key))
    return lines


def _judge_run(verdict: Verdict, run: str, status: str, log: Sequence[Mapping[str, Any]], told: int | None) -> None:
    if status != "completed":
        verdict.stuck.append(f"{run} is {status}")
        return
    verdict.tasks_lost += sum(event["kind"] == "task_lost" for event in log)
    if [event["seq"] for event in log] != list(range(1, len(log) + 1)):
        verdict.wrong.append(f"{run}: its events are not numbered without a gap")
    result = next((event["output"] for event in log if event["kind"] == "run_completed"), None)
    if told is not None and (not isinstance(result, dict) or result["told"] != told):
        verdict.commands.append(f"{run} was told {told} and has the result {result}")
    if not isinstance(result, dict) or result["total"] not in {TOTAL, -1}:
        verdict.wrong.append(f"{run} has the result {result}")


def _judge_ledger(verdict: Verdict, lines: Sequence[Line]) -> None:
    first: dict[tuple[str, int], float] = {}
    keys: dict[tuple[str, int], str] = {}
    for line in lines:
        place = (line.run, line.number)
        if keys.setdefault(place, line.key) != line.key:
            verdict.wrong.append(f"step {line.number} of {line.run} had two keys")
        if place in first:
            if line.number == CHARGE:
                verdict.wrong.append(f"the irreversible step of {line.run} ran twice")
            elif (line.run, line.number + 1) in first:
                verdict.hops.append(LostHop(line.run, line.number, first[line.run, line.number + 1], line.at))
            else:
                verdict.repeated += 1
        first.setdefault(place, line.at)
