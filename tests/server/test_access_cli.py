"""Keys and questions on the command line, and a server that is closed by a key."""

from __future__ import annotations

import http.client
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import Spoken, Weft
from tests.server.test_serve import APP, Process, process, serve
from weft.cli import main


@pytest.fixture
def weft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Weft:
    """``weft(...)`` as if it were typed in an empty folder with an app."""
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)

    def speak(*words: str) -> Spoken:
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return Spoken(code, said.out, said.err)

    return speak


def keys(weft: Weft) -> list[Any]:
    found: Any = weft("keys", "list", "--json").json()
    return list(found["keys"])


def test_a_key_is_made_shown_once_listed_and_revoked(weft: Weft, tmp_path: Path) -> None:
    assert "No keys" in weft("keys").out

    made = weft(
        "keys", "create", "ann", "--scope", "read", "--scope", "decide", "--group", "role:ops", "--tenant", "acme"
    )

    assert made.code == 0
    key = made.out.strip()
    assert key.startswith("weft_")
    assert "shown once" in made.err
    assert "closed from now on" in made.err
    (listed,) = keys(weft)
    assert (listed["name"], listed["tenant"], listed["scopes"]) == ("ann", "acme", ["read", "decide"])
    assert listed["good"] is True
    assert key not in weft("keys", "list").out
    for path in tmp_path.glob("weft.db*"):
        assert path.is_dir() or key.encode() not in path.read_bytes()

    assert weft("keys", "revoke", listed["id"][:4]).code == 0
    assert keys(weft)[0]["good"] is False
    assert "closed from now on" not in weft("keys", "create", "bob", "--scope", "admin", "--expires", "never").err


@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["create", "ann"],
        ["create", "ann", "--scope", "everything"],
        ["create", "ann", "--scope", "read", "--tenant", "a/b"],
        ["create", "ann", "--scope", "read", "--expires", "soon"],
        ["forge", "ann"],
        ["revoke"],
        ["revoke", "nobody"],
    ],
)
def test_what_cannot_be_is_refused(weft: Weft, words: list[str]) -> None:
    said = weft("keys", *words)

    assert said.code in (1, 2)
    assert said.out == ""
    assert keys(weft) == []


def asked(server: Process, path: str, key: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        connection.request("GET", path, headers={} if key is None else {"authorization": f"Bearer {key}"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.proof
def test_a_server_says_whether_it_is_open_and_a_key_made_meanwhile_closes_it(weft: Weft, tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        assert server.running.stderr is not None
        assert "no keys yet" in server.said + server.running.stderr.readline()
        assert asked(server, "/api/v1/runs") == 200
        key = weft("keys", "create", "ann", "--scope", "read").out.strip()
        while asked(server, "/api/v1/runs") != 401:
            time.sleep(0.02)
        assert asked(server, "/api/v1/runs", key) == 200
    with serve(tmp_path) as server:
        assert server.running.stderr is not None
        assert "every request needs a key" in server.said + server.running.stderr.readline()
        assert asked(server, "/healthz") == 200


@pytest.mark.proof
def test_with_a_key_other_addresses_may_be_bound(weft: Weft, tmp_path: Path) -> None:
    key = weft("keys", "create", "ann", "--scope", "read").out.strip()
    with process(tmp_path, "serve", "app.py", "--host", "0.0.0.0", "--port", "0") as running:
        server = Process(running)
        assert asked(server, "/api/v1/runs") == 401
        assert asked(server, "/api/v1/runs", key) == 200


QUESTION = """
import weft
app = weft.App()

@app.workflow
async def pay(ctx: weft.Context, order: str, of: list[str]) -> dict:
    answer = await ctx.ask("ok", title="Pay?", of=of, about={"order": order})
    return {"approved": answer.approved, "by": answer.by}

@app.workflow
async def nothing() -> None:
    pass
"""


def test_questions_are_looked_at_and_answered_by_those_who_are_asked(weft: Weft, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(QUESTION)
    for run, of in (("p-1", '["ann"]'), ("p-2", '["bob", "role:ops"]')):
        assert weft("start", "pay", f"order={run}", f"of={of}", "--id", run, "--app", "app.py").code == 0
    assert weft("run", "app.py", "nothing").code == 0

    shown: Any = weft("inbox", "p-1:ok", "--json").json()
    assert shown["about"] == {"order": "p-1"}
    assert shown["digest"] in weft("inbox", "p-1").out
    assert '"order": "p-1"' in weft("inbox", "p-1:ok").out
    for who, runs in (("ann", {"p-1", "p-2"}), ("bob", {"p-2"}), ("role:ops", {"p-2"}), ("role:x", set())):
        found: Any = weft("inbox", "--of", who, "--json").json()
        assert {one["run"] for one in found["questions"]} == runs, who

    assert "may not answer" in weft("decide", "p-1:ok", "approve", "--by", "eve").err
    assert "has changed since" in weft("decide", "p-1:ok", "approve", "--by", "ann", "--digest", "0" * 32).err
    assert weft("decide", "p-1:ok", "approve", "--by", "ann", "--digest", shown["digest"]).code == 0
    assert weft("run", "app.py", "nothing").code == 0
    status: Any = weft("show", "p-1", "--json").json()
    assert msgspec.json.encode(status).count(b'"completed"') == 1
