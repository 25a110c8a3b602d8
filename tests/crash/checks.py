"""What must hold after any crash, judged by the ledger and the log alone."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

from tests.crash.scenario import Ledger


def check(folder: Path, wanted: dict[str, str]) -> None:
    """Raise AssertionError if anything acknowledged was lost, or anything recorded was repeated.

    ``wanted``: how each run must have ended; all others have completed.
    """
    database = sqlite3.connect(folder / "crash.db")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    logs = _logs(database)
    _check_numbers(logs)
    _check_effects(folder, logs)
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "True"] in lines, f"the run did not end as it must: {lines[-5:]}"
    assert ["result", "doomed-failed"] in lines
    assert not [line for line in lines if line == ["result", "False"]]
    commands = [event for event in logs["main"] if event["kind"] in ("message_received", "ask_answered")]
    assert len(commands) == 1, "what was acknowledged is in the log once"
    assert database.execute("SELECT count(*) FROM inbox").fetchone() == (0,), "mail is taken before a run ends"
    statuses = dict(database.execute("SELECT id, status FROM runs").fetchall())
    assert {run: statuses.pop(run) for run in wanted} == wanted
    assert set(statuses.values()) == {"completed"}
    released = [line for line in lines if line[:2] == ["effect", "release"]]
    assert released, "what the failed run had done was undone"
    assert len({line[2] for line in released}) == 1, "always under one key"


def _logs(database: sqlite3.Connection) -> dict[str, list[dict[str, object]]]:
    rows = database.execute(
        "SELECT runs.id, runs.uid, events.seq, events.body FROM events "
        "JOIN runs ON runs.num = events.run ORDER BY runs.num, events.seq"
    )
    logs: dict[str, list[dict[str, object]]] = {}
    for run_id, uid, seq, body in rows:
        logs.setdefault(run_id, []).append({**json.loads(body), "seq": seq, "uid": uid})
    return logs


def _check_numbers(logs: dict[str, list[dict[str, object]]]) -> None:
    for run_id, events in logs.items():
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), f"{run_id} has a gap"
        ends = [event for event in events if event["kind"] in ("run_completed", "run_failed", "run_cancelled")]
        again = [event for event in events if event["kind"] == "run_retried"]
        assert len(ends) == 1 + len(again), f"{run_id} ended {len(ends)} times"
        assert len(again) <= 1, f"{run_id} was tried again {len(again)} times"


def _check_effects(folder: Path, logs: dict[str, list[dict[str, object]]]) -> None:
    """A body ran at most once per hand-out that the log knows of: once, plus its failures and its losses."""
    performed = Counter(line[2] for line in Ledger(folder / "ledger.txt").lines() if line[0] == "effect")
    allowed: Counter[str] = Counter()
    for events in logs.values():
        names = ["~", "&"]
        keys: dict[object, str] = {}
        for event in events:
            names += event.get("add", [])  # type: ignore[arg-type]
            if event["kind"] == "task_scheduled":
                place = _readable(event["at"], names) if "at" in event else f"{event['node']}/{event['token']}"
                keys[event["seq"]] = f"{event['uid']}/{place}"
            elif event["kind"] == "undo_scheduled":
                keys[event["seq"]] = f"{keys[event['of']]}!undo"
            else:
                if event["kind"] == "task_lost" or (event["kind"] == "task_failed" and event.get("retry_at")):
                    allowed[keys[event["task"]]] += 1
                continue
            allowed[keys[event["seq"]]] += 1
    repeated = {key: count for key, count in performed.items() if count > allowed[key]}
    assert not repeated, f"performed more often than handed out: {repeated}"


def _readable(path: object, names: list[str]) -> str:
    parts: list[str] = []
    for part in path:  # type: ignore[attr-defined]
        if part >= 0:
            parts.append(names[part])
        elif parts[-1] in ("~", "&"):
            parts[-1] += str(-1 - part)
        else:
            parts[-1] += f"#{-part}"
    return "/".join(parts)
