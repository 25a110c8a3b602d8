"""What must hold after any crash, judged by the ledger and the log alone."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests import servers
from tests.crash import agent_scenario
from tests.crash.hosting import url_of
from tests.crash.scenario import Ledger

Ask = Callable[[str], list[tuple[Any, ...]]]
ENDS: Counter[str] = Counter()
"""How often runs of agents ended how, over all trials."""


def check(folder: Path, wanted: dict[str, str]) -> None:
    """Raise AssertionError if anything acknowledged was lost, or anything recorded was repeated.

    ``wanted``: how each run must have ended; all others have completed.
    """
    ask = _asking(folder)
    logs = _logs(ask)
    _check_numbers(logs)
    _check_effects(folder, logs)
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "True"] in lines, f"the run did not end as it must: {lines[-5:]}"
    assert ["result", "doomed-failed"] in lines
    assert not [line for line in lines if line == ["result", "False"]]
    assert ask("SELECT count(*) FROM inbox") == [(0,)], "mail is taken before a run ends"
    statuses = dict(ask("SELECT id, status FROM runs"))
    assert {run: statuses.pop(run) for run in wanted} == wanted
    assert set(statuses.values()) <= {"completed"}
    if logs["main"][0].get("style") == "goal":
        patches = [event for event in logs["patched"] if event["kind"] == "run_patched"]
        assert len(patches) == 1, "a patch that was acknowledged is in the log once"
        return
    commands = [event for event in logs["main"] if event["kind"] in ("message_received", "ask_answered")]
    assert len(commands) == 1, "what was acknowledged is in the log once"
    released = [line for line in lines if line[:2] == ["effect", "release"]]
    assert released, "what the failed run had done was undone"
    assert len({line[2] for line in released}) == 1, "always under one key"


def check_wals(folder: Path) -> None:
    """Raise AssertionError if anything was lost although Redis has lived all the time."""
    ask = _asking(folder)
    assert ask("SELECT body FROM losses") == []
    assert ask("SELECT id FROM wals WHERE forced") == []
    assert ask("SELECT id FROM runs WHERE wal IS NOT NULL") == [], "a run that is over names no WAL"


def check_schedule(folder: Path) -> None:
    """Raise AssertionError unless every nominal time has exactly one run, or was missed, and every run its effect."""
    logs = _logs(_asking(folder))
    _check_effects(folder, logs)
    events = logs["schedule/tick"]
    fired = [event["run_id"] for event in events if event["kind"] == "schedule_fired"]
    assert len(fired) == len(set(fired)) >= 5, "a nominal time was fired twice"
    found = [event for event in events if event["kind"] == "scheduled_run_found"]
    assert all("backfill_next" in event for event in found), "only a backfill that was asked for again finds runs"
    assert sorted(logs.keys() - {"schedule/tick"}) == sorted(fired), "what was fired has a run, and nothing else has"
    declared = [event for event in events if event["kind"] == "schedule_declared"]
    assert len(declared) == 1
    times: list[int] = []
    for event in events:
        if event["kind"] == "schedule_fired" and "backfill_next" not in event:
            times.append(int(str(event["nominal"])))
        assert event["kind"] != "schedule_missed", "it may come at any time later"
    assert times == [int(str(declared[0]["next"])) + n * 1000 for n in range(len(times))]
    assert ["result", "ended"] in Ledger(folder / "ledger.txt").lines()


def check_starts(folder: Path) -> None:
    """Raise AssertionError unless every acknowledged input is in exactly one run, and one singleton is left."""
    ask = _asking(folder)
    logs = _logs(ask)
    _check_numbers(logs)
    _check_effects(folder, logs)
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "ended"] in lines
    took: dict[tuple[str, int], str] = {}
    for _, name, number, run in (line for line in lines if line[0] == "acked"):
        assert took.setdefault((name, int(number)), run) == run, "the same start has the same answer"
    given: dict[str, dict[str, Any]] = {run: events[0]["input"] for run, events in logs.items()}  # type: ignore[misc]
    for (name, number), run in took.items():
        assert name != "index" or number in given[run]["items"]
    items = [item for found in given.values() for item in found.get("items", ())]
    assert sorted(items) == list(range(5)), "every input is in exactly one run"
    assert all(len(found.get("items", ())) <= 3 for found in given.values())
    for run in {run for (name, _), run in took.items() if name == "publish"}:
        newest = max(number for (name, number), taker in took.items() if (name, taker) == ("publish", run))
        assert given[run] == {"n": newest}
    statuses = dict(ask("SELECT id, status FROM runs"))
    singles = sorted((run, status) for run, status in statuses.items() if run.startswith("sync"))
    assert singles == [("sync-0", "cancelled"), ("sync-1", "cancelled"), ("sync-2", "completed")]
    assert {status for run, status in statuses.items() if not run.startswith("sync")} == {"completed"}
    assert ask("SELECT count(*) FROM inbox") == [(0,)]


def check_bulk(folder: Path) -> None:
    """Raise AssertionError unless the bulk retried every run exactly once, and every run has ended right."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    (bulk,) = [run for run in logs if run.startswith("bulk/")]
    for run, events in logs.items():
        retried = [event for event in events if event["kind"] == "run_retried"]
        assert len(retried) == (run != bulk), f"{run} was retried {len(retried)} times"
        assert events[-1]["kind"] == "run_completed"
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "ended"] in lines
    assert ["applied", "5"] in lines


def check_hooks(folder: Path) -> None:
    """Raise AssertionError unless every event that a hook wants has exactly one delivery, and nothing else has."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    wanted: set[str] = set()
    for run, events in logs.items():
        if run.startswith("hook/"):
            assert events[-1]["kind"] == "run_completed"
            continue
        for event in events:
            place = f"{event['uid']}/{event['seq']}"
            if event["kind"] == "run_failed" or (event["kind"] == "task_failed" and event.get("retry_at")):
                wanted.add(f"hook/troubles/{place}")
            if event["kind"] == "run_completed" and run != "order-1":
                wanted.add(f"hook/ends/{place}")
    assert {run for run in logs if run.startswith("hook/")} == wanted, "an event has no delivery, or one too many"
    lines = Ledger(folder / "ledger.txt").lines()
    assert {line[1] for line in lines if line[0] == "effect"} == wanted
    keys = {(line[1], line[2]) for line in lines if line[0] == "effect"}
    assert len(keys) == len(wanted), "always under one key"
    assert len(wanted) == 4 + 1 + 2
    assert ["result", "ended"] in lines


def check_fork(folder: Path) -> None:
    """Raise AssertionError unless there is one fork, with the past of its original, and all have ended right."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, {run: _own(events) for run, events in logs.items()})
    assert sorted(logs) == ["fork", "fork.child", "main", "main.child"]
    assert all(events[-1]["kind"] == "run_completed" for events in logs.values())
    ended = next(n for n, event in enumerate(logs["fork"]) if event["kind"] == "run_forked")
    for one, other in zip(logs["main"][1:ended], logs["fork"][1:ended], strict=True):
        assert {**one, "uid": ""} == {**other, "uid": ""}, "the past is the same"
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "True"] in lines
    assert ["result", "False"] not in lines


def check_delete(folder: Path) -> None:
    """Raise AssertionError unless exactly what was to go is gone, each for a reason that is written down once."""
    ask = _asking(folder)
    logs = _logs(ask)
    _check_numbers(logs)
    assert sorted(logs) == ["kept", "kept.child", "old-0"]
    # SQLite keeps the row with the largest number without its id and its content, so that no other run gets the number.
    assert ask("SELECT count(*) FROM runs WHERE status <> 'doomed' OR id <> uid") == [(3,)], "a run is half deleted"
    for table in ("events", "snapshots", "keys", "refs", "inbox", "tasks"):
        left = ask(f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT num FROM runs WHERE status <> 'doomed')")
        assert left == [(0,)], f"{table} has rows of a run that is gone"
    assert ask("SELECT count(*) FROM refs WHERE hash NOT IN (SELECT hash FROM blobs)") == [(0,)], "a value is gone"
    assert ask("SELECT count(*) FROM refs") > [(0,)]
    audit = ask("SELECT verb, run, by, details FROM audit ORDER BY num")
    assert [entry[:3] for entry in audit] == [("keep", "kept", ""), ("delete", "by-hand", "ann"), ("gc", "", "bob")]
    assert [json.loads(entry[3]).get("runs") for entry in audit] == [None, 2, 4]
    assert ["result", "True"] in Ledger(folder / "ledger.txt").lines()


def check_import(folder: Path) -> None:
    """Raise AssertionError unless the copies are as at home, and the fork ended as at home and repeated nothing."""
    ask = _asking(folder)
    logs, home = _logs(ask), _logs(_asking_file(folder / "home.db"))
    _check_numbers({run: events for run, events in logs.items() if run.startswith("fork")})
    for run in ("main", "main.child"):
        assert logs[run] == home[run], f"{run} is not as it was"
    statuses = dict(ask("SELECT id, status FROM runs"))
    assert {statuses[run] for run in home} == {"imported"}
    assert {status for run, status in statuses.items() if run not in home} == {"completed"}
    assert ask("SELECT count(*) FROM refs WHERE hash NOT IN (SELECT hash FROM blobs)") == [(0,)], "a value is missing"
    lines = Ledger(folder / "ledger.txt").lines()
    results = {name: [line[1] for line in lines if line[0] == name] for name in ("whole", "fork")}
    assert results["fork"]
    assert set(results["fork"]) == {results["whole"][-1]}
    uids = {run: events[0]["uid"] for run, events in logs.items()}
    here = [line[2] for line in lines if line[0] == "effect" and line[2].startswith(str(uids["fork"]))]
    assert all("measure" in key for key in here), "work before the point is the original's"


def check_asked(folder: Path) -> None:
    """Raise AssertionError unless every patch was asked for once and applied once, before its run went on."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    asked = ["patch_asked", "patch_review_asked", "ask_answered", "run_patched"]
    withdrawn = [asked[0], "patch_dropped"]
    for run, kinds in (("waits", [asked[0], asked[3]]), ("reviewed", asked), ("withdrawn", withdrawn)):
        events = [str(event["kind"]) for event in logs[run]]
        assert [kind for kind in events if kind in asked or kind == "patch_dropped"] == kinds, run
        assert events[-1] == "run_completed"
    lines = Ledger(folder / "ledger.txt").lines()
    performed = {(line[2], line[1]) for line in lines if line[0] == "effect"}
    steps = sorted(step for _, step in performed)
    assert steps == ["new", "new", "old"], "two went on with the new document, and one with the old one"
    assert ["acked", "all"] in lines


def check_patches(folder: Path) -> None:
    """Raise AssertionError unless every run was patched once, went on with the new version and has ended right."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    assert sorted(logs) == ["left-0", "left-1", "owned"]
    for run, events in logs.items():
        patched = [event["version"] for event in events if event["kind"] == "run_patched"]
        assert patched == ["2"], f"{run} was patched {len(patched)} times"
        assert events[-1]["kind"] == "run_completed"
        assert str(events[-1]["output"]).startswith("courier"), f"{run} went on with the old version"
    assert {version for (version,) in _asking(folder)("SELECT version FROM runs")} == {"2"}
    lines = Ledger(folder / "ledger.txt").lines()
    assert [line for line in lines if line[:2] == ["effect", "ship"]] == []
    assert {line[1] for line in lines if line[0] == "acked"} == set(logs)


def check_graph_patches(folder: Path) -> None:
    """Raise AssertionError unless every run was patched once, and has ended as the patch leads it."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    assert sorted(logs) == ["again", "back", "between"]
    for run, events in logs.items():
        patched = [event for event in events if event["kind"] == "run_patched"]
        assert len(patched) == 1, f"{run} was patched {len(patched)} times"
        assert events[-1]["kind"] == "run_completed"
        messages = [event for event in events if event["kind"] == "message_received"]
        assert len(messages) == 1, "what was acknowledged is in the log once"
    assert _asking(folder)("SELECT count(*) FROM inbox") == [(0,)], "mail is taken before a run ends"
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "ended"] in lines
    assert ["result", "False"] not in lines
    packed = Counter(line[2] for line in lines if line[:2] == ["effect", "pack"] and logs["back"][0]["uid"] in line[2])
    assert len(packed) >= 3, "first, more and last were performed"


def check_set(folder: Path) -> None:
    """Raise AssertionError unless every run got its result once, and went on with it."""
    logs = _logs(_asking(folder))
    _check_numbers(logs)
    _check_effects(folder, logs)
    assert sorted(logs) == ["failed", "graph", "open"]
    for run, events in logs.items():
        given = [event for event in events if event["kind"] == "result_set"]
        assert [event["by"] for event in given] == ["ann"], f"{run} got {len(given)} results"
        assert events[-1]["kind"] == "run_completed"
        assert "packed 40000" in str(events[-1]["output"])
    lines = Ledger(folder / "ledger.txt").lines()
    assert {line[1] for line in lines if line[0] == "acked"} == set(logs)
    assert len({line[2] for line in lines if line[:2] == ["effect", "pack"]}) == len(logs), "always under one key"


def check_move(folder: Path) -> None:
    """Raise AssertionError unless the run left one store as a whole, and ended right in the other, once."""
    left, logs = _logs(_asking(folder)), _logs(_asking_file(folder / "there.db"))
    assert sorted(left) == sorted(logs) == ["main", "main.inner"]
    _check_numbers(logs)
    _check_effects(folder, logs)
    for run, events in left.items():
        assert events[-1]["kind"] == "run_moved"
        kinds = [event["kind"] for event in logs[run]]
        assert logs[run][: len(events)] == events, "the past is the same"
        assert kinds.index("run_adopted") == len(events)
        assert kinds.count("run_moved") == kinds.count("run_adopted") == 1
    messages = [event for event in logs["main.inner"] if event["kind"] == "message_received"]
    assert len(messages) == 1, "what was acknowledged is in the log once"
    lines = Ledger(folder / "ledger.txt").lines()
    assert ["result", "True"] in lines
    assert ["result", "False"] not in lines


def check_agent(folder: Path) -> None:
    """Raise AssertionError unless money left at most once, no recorded call was repeated, and the budget held."""
    ask = _asking(folder)
    logs = _logs(ask)
    _check_numbers(logs)
    _check_effects(folder, logs)
    lines = Ledger(folder / "ledger.txt").lines()
    assert not [line for line in lines if line[0] == "malformed"], "a tool call has no result, or several"
    (ended,) = {line[1] for line in lines if line[0] == "result"}
    assert ended in agent_scenario.ENDS, f"the run ended with {ended}"
    refunds = sum(line[:2] == ["effect", "refund"] for line in lines)
    assert refunds == 1 if ended == "done" else refunds <= 1, f"money left {refunds} times"
    answered = [event for event in logs[agent_scenario.RUN] if event["kind"] == "ask_answered"]
    assert len(answered) <= 1
    assert answered or not refunds, "money left before anyone agreed"
    asked = [line for line in lines if line[:2] == ["effect", "model"]]
    assert len({(line[2], line[3]) for line in asked}) == len({line[2] for line in asked}), (
        "a repeated call is the same"
    )
    billed = {"calls": len(asked), "tokens": sum(int(line[4]) for line in asked)}
    uid = logs[agent_scenario.RUN][0]["uid"]
    kept = {unit: rest for unit, *rest in ask(f"SELECT unit, most, spent, reserved FROM budgets WHERE scope = '{uid}'")}
    for unit, limit in agent_scenario.LIMITS.items():
        most, spent, reserved = kept[unit]
        assert billed[unit] <= spent <= most == limit, f"{unit}: billed {billed[unit]}, spent {spent} of {limit}"
        assert reserved == 0
    ENDS[ended] += 1


def _own(events: list[dict[str, object]]) -> list[dict[str, object]]:
    """The events that a run recorded itself. Names of places that it shares with its original are kept."""
    ended = next((n for n, event in enumerate(events) if event["kind"] == "run_forked"), -1)
    names = [name for event in events[: ended + 1] for name in event.get("add", [])]  # type: ignore[attr-defined]
    return [{**events[0], "add": names}, *events[ended + 1 :]] if ended >= 0 else events


def _asking(folder: Path) -> Ask:
    """The database of a trial, whatever it is in."""
    url = url_of(folder)
    if not url.startswith("sqlite:"):
        return lambda text: servers.run(_fetch(url, text))
    return _asking_file(folder / "crash.db")


def _asking_file(file: Path) -> Ask:
    database = sqlite3.connect(file)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return lambda text: database.execute(text).fetchall()


async def _fetch(url: str, text: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
    try:
        return [tuple(row) for row in await connection.fetch(text)]
    finally:
        await connection.close()


def _logs(ask: Ask) -> dict[str, list[dict[str, object]]]:
    rows = ask(
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
    lines = Ledger(folder / "ledger.txt").lines()
    # Items of a goal's step are told by their order, which the log does not repeat: they count together.
    performed = Counter(re.sub(r"\[\d+\]$", "", line[2]) for line in lines if line[0] == "effect")
    allowed: Counter[str] = Counter()
    for events in logs.values():
        names = ["~", "&"]
        keys: dict[object, str] = {}
        for event in events:
            names += event.get("add", [])  # type: ignore[arg-type]
            # A record of a graph or a goal may hold the task that it leads to; the record's number is the task's.
            scheduled = event if event["kind"] == "task_scheduled" else event.get("task")
            if isinstance(scheduled, dict):
                keys[event["seq"]] = f"{event['uid']}/{_place(scheduled, names)}"
            elif event["kind"] == "undo_scheduled":
                keys[event["seq"]] = f"{keys[event['of']]}!undo"
            else:
                if event["kind"] == "task_lost" or (event["kind"] == "task_failed" and event.get("retry_at")):
                    allowed[keys[event["task"]]] += 1
                continue
            allowed[keys[event["seq"]]] += 1
    repeated = {key: count for key, count in performed.items() if count > allowed[key]}
    assert not repeated, f"performed more often than handed out: {repeated}"


def _place(event: dict[str, object], names: list[str]) -> str:
    """Where a task stands, in the words of its key."""
    if "again" in event:
        again: Any = event["again"]
        return f"{again['place']}~{again['n']}" if again.get("n") else str(again["place"])
    if "at" in event:
        return _readable(event["at"], names)
    return f"{event['node']}/{event['token']}" if "token" in event else str(event["step"])


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
