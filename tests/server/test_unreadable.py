"""A run that cannot be read, over HTTP: typed answers, never an error of the server."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.damage import KINDS, damage
from tests.server.kit import API, serving

POSTS: dict[str, Any] = {
    "messages": {"name": "go", "body": 1},
    "requests": {"name": "go", "body": 1},
    "cancel": {},
    "pause": {},
    "resume": {},
    "retry": {},
}


def app_at(path: Path) -> weft.App:
    app = weft.App(f"sqlite:///{path}/weft.db")

    @app.workflow
    async def patient(ctx: weft.Context) -> int:
        return await ctx.receive("go", int)

    return app


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    with serving(app_at(tmp_path)) as server:
        server.start("patient", "odd")
        server.until("odd", "message_awaited")
    damage(tmp_path / "weft.db", "odd", kind)
    with serving(app_at(tmp_path)) as server:
        run = f"{API}/runs/odd"
        for verb, body in POSTS.items():
            answer = server.post(f"{run}/{verb}", body)
            assert (verb, answer.status, answer.code) == (verb, 409, "run.unreadable")
            assert "weft cancel odd --force" in answer.json["hint"]
        decided = server.post(f"{API}/approvals/odd:Go%3F/decision", {"approved": True})
        assert (decided.status, decided.code) == (409, "run.unreadable")

        shown = server.get(run).json
        assert (shown["id"], shown["problem"]["code"]) == ("odd", "run.unreadable")
        explained = server.get(f"{run}/explain").json
        assert (explained["status"], explained["code"]) == (shown["status"], "run.unreadable")
        events = server.get(f"{run}/events").json
        assert events["events"][0]["kind"] == "run_started"
        assert (events.get("problem") is None) == (kind in ("mail", "missing"))
        assert server.get(f"{run}/tree").status == 200

        ended = server.post(f"{run}/cancel", {"force": True, "reason": "enough"})
        assert (ended.status, ended.json["status"]) == (200, "cancelled")
        assert "nothing that it did was undone" in ended.json["hint"]
        assert server.get(run).json["status"] == "cancelled"


def test_a_graph_whose_definition_is_gone(tmp_path: Path) -> None:
    app = app_at(tmp_path)
    app.graph({"weft": "graph/1", "name": "letter", "nodes": {"wait": {"receive": {"name": "go"}}}})
    with serving(app) as server:
        server.start("letter", "lost")
        server.until("lost", "message_awaited")
    with contextlib.closing(sqlite3.connect(tmp_path / "weft.db")) as plain, plain:
        plain.execute("DELETE FROM definitions")
    with serving(app_at(tmp_path)) as server:
        run = f"{API}/runs/lost"
        shown = server.get(run)
        assert (shown.status, shown.json["problem"]["code"]) == (200, "run.unreadable")
        assert "of letter, which is not in the store" in shown.json["problem"]["detail"]
        explained = server.get(f"{run}/explain")
        assert (explained.status, explained.json["code"]) == (200, "run.unreadable")
        for part in ("events", "tree", "result"):
            assert server.get(f"{run}/{part}").status < 300
        assert server.post(f"{run}/cancel", {}).code == "run.unreadable"
        assert server.post(f"{run}/cancel", {"force": True}).json["status"] == "cancelled"
