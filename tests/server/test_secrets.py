"""A secret is nowhere but in the step that uses it: not in the database, not in logs, not in answers."""

from __future__ import annotations

import asyncio
import io
import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.server.kit import API, Answer, Server, serving
from weft.core import values
from weft.server.logs import JsonLines, TextLines
from weft.steps import secrets
from weft.steps.secrets import replace_secrets, strike_json


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A value that nothing else has; it needs escaping in JSON, as a key file would."""
    value = f'canary-{uuid.uuid4()}-"\\\n-end'
    monkeypatch.setenv("CANARY", value)
    yield value
    secrets.REVEALED.clear()


def leaky_app(url: str, folder: Path) -> weft.App:
    """An app that does with a secret what it should not."""
    app = weft.App(url)

    @app.step(retries=0)
    async def use(key: weft.Secret, how: str) -> Any:
        value = key.reveal()
        (folder / "used").write_text(value)
        if how == "return":
            return {"deep": [f"it is {value}"]}
        if how == "raise":
            raise OSError(f"no access with {value}")
        if how == "attribute":
            error = OSError("no")
            error.token = {"t": value}  # type: ignore[attr-defined]
            raise error
        if how == "log":
            logging.getLogger("shop").error("used %s", value)
            logging.getLogger("weft").error("used %s", value)
            try:
                raise KeyError(value)
            except KeyError:
                logging.getLogger("shop").exception("failed")
        if how == "emit":
            weft.task().emit("out", f"token {value}")
        return "done"

    @app.workflow
    async def leak(ctx: weft.Context, how: str) -> Any:
        return await use(weft.Secret("env:CANARY"), how)

    @app.workflow
    async def told(ctx: weft.Context, key: weft.Secret) -> Any:
        return await use(key, "return")

    @app.workflow
    async def curious(ctx: weft.Context) -> str:
        return weft.Secret("env:CANARY").reveal()

    @app.workflow
    async def loose(ctx: weft.Context, anything: Any) -> Any:
        return anything

    return app


def everywhere(folder: Path) -> bytes:
    """All that is on disk, but for what the step itself wrote."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "used")


def traces(canary: str) -> list[bytes]:
    """The ways in which the value would show: as it is, and as JSON has it."""
    return [canary.encode(), msgspec.json.encode(canary)[1:-1], canary.partition('"')[0].encode()]


@pytest.mark.parametrize("how", ["use", "return", "raise", "attribute", "log", "emit"])
def test_a_secret_is_in_the_step_and_nowhere_else(tmp_path: Path, canary: str, how: str) -> None:
    lines = io.StringIO()
    handlers = [logging.StreamHandler(lines), logging.StreamHandler(lines)]
    handlers[0].setFormatter(JsonLines())
    handlers[1].setFormatter(TextLines())
    root = logging.getLogger()
    before, root.handlers[:] = list(root.handlers), handlers
    answers: list[Answer] = []
    try:
        app = leaky_app(f"sqlite:///{tmp_path}/weft.db", tmp_path)
        with serving(app) as server:
            server.start("leak", "run", how=how)
            server.get(f"{API}/runs/run/result?wait=10")
            parts = ("", "/events", "/result", "/tree", "/explain", "/streams", "/streams/out")
            answers = [server.get(f"{API}/runs/run{path}") for path in parts]
            answers += [server.get("/"), server.get("/metrics"), server.get(f"{API}/runs")]
            stored = everywhere(tmp_path)
    finally:
        root.handlers[:] = before

    assert (tmp_path / "used").read_text() == canary
    for trace in traces(canary):
        assert trace not in stored
        assert trace not in everywhere(tmp_path)
        assert trace.decode() not in lines.getvalue()
        for answer in answers:
            assert answer.status == 200
            assert trace not in answer.raw
    assert b"env:CANARY" in stored
    if how != "use":
        shown = b"".join([stored, lines.getvalue().encode(), *[answer.raw for answer in answers]])
        assert b"[secret env:CANARY]" in shown


def test_a_workflow_does_not_see_a_secret(tmp_path: Path, canary: str) -> None:
    with serving(leaky_app(f"sqlite:///{tmp_path}/weft.db", tmp_path)) as server:
        server.start("curious", "run")
        result = server.result("run")
    assert result["failure"]["type"] == "NoContext"
    assert canary.encode() not in everywhere(tmp_path)


@pytest.mark.parametrize(
    ("workflow", "given"),
    [
        ("told", {"key": {"$secret": "env:CANARY"}}),
        ("told", {"key": {"$secret": "file:/etc/passwd"}}),
        ("loose", {"anything": {"$secret": "env:CANARY"}}),
        ("loose", {"anything": [{"a": {"\u0024secret": "env:CANARY"}}]}),
        ("loose", {"anything": {"$secret": 1, "b": 2}}),
    ],
)
def test_callers_cannot_name_secrets(tmp_path: Path, canary: str, workflow: str, given: Any) -> None:
    with serving(leaky_app("memory://", tmp_path)) as server:
        answer = server.post(f"{API}/runs", {"workflow": workflow, "input": given})

        assert (answer.status, answer.code) == (422, "value.secret")
        assert not (tmp_path / "used").exists()


def test_neither_can_messages_forms_or_results_of_workers(tmp_path: Path, server: Server) -> None:
    run = server.start("order", "secretive", order_id="o")
    mark = {"$secret": "env:PATH"}

    assert server.post(f"{API}/runs/{run}/messages", {"name": "quote", "body": mark}).code == "value.secret"
    decision = {"approved": True, "form": mark}
    assert server.post(f"{API}/approvals/{run}%3Ax/decision", decision).code == "value.secret"


def test_a_text_that_only_looks_like_it_is_a_text(tmp_path: Path) -> None:
    with serving(leaky_app("memory://", tmp_path)) as server:
        for value in ("$secret", ["$secret"], {"secret": "$secret"}, '{"$secret":"env:X"}'):
            run = server.start("loose", anything=value)
            assert server.result(run)["output"] == value


# --- the type ----------------------------------------------------------------------------------------------------


def test_only_a_secret_is_written_as_one() -> None:
    secret = weft.Secret("env:X")
    assert values.encode({"a": [secret]}) == b'{"a":[{"$secret":"env:X"}]}'
    for forged in ({"$secret": "env:X"}, [secret, {"$secret": "env:X"}], {"a": secret, "b": {"c": {"$secret": None}}}):
        with pytest.raises(weft.BadValue, match="reserved for secrets"):
            values.encode(forged)


@pytest.mark.parametrize("ref", ["", "X", "env:", "file:", "http://x", "env:a\nb", "ENV:X"])
def test_what_names_no_secret_is_refused(ref: str) -> None:
    with pytest.raises(ValueError, match="is not a reference to a secret"):
        weft.Secret(ref)


def test_a_secret_is_shown_by_its_place() -> None:
    assert repr(weft.Secret("env:X")) == "Secret('env:X')"
    assert str(weft.Secret("env:X")) == "Secret('env:X')"


def test_a_secret_may_be_in_a_file(tmp_path: Path, canary: str) -> None:
    (tmp_path / "key").write_text("  in a file \n")
    assert weft.Secret(f"file:{tmp_path}/key").reveal() == "in a file"
    assert replace_secrets("it is in a file!") == f"it is [secret file:{tmp_path}/key]!"


@pytest.mark.parametrize("ref", ["env:NOBODY_HAS_THIS", "file:/nowhere/at/all"])
def test_a_secret_that_is_not_there_is_said_to_be_missing(ref: str) -> None:
    with pytest.raises(weft.NotFound):
        weft.Secret(ref).reveal()


def test_a_secret_that_everything_contains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "abc")
    with pytest.raises(weft.BadValue, match="kept secret"):
        weft.Secret("env:SHORT").reveal()


def test_a_secret_inside_another_does_not_leave_a_part_of_it(monkeypatch: pytest.MonkeyPatch, canary: str) -> None:
    monkeypatch.setenv("SHORTER", "secret-part")
    monkeypatch.setenv("LONGER", "a-secret-part-of-it")
    weft.Secret("env:SHORTER").reveal()
    weft.Secret("env:LONGER").reveal()
    assert replace_secrets("x a-secret-part-of-it y secret-part") == "x [secret env:LONGER] y [secret env:SHORTER]"


def test_json_stays_json(canary: str) -> None:
    weft.Secret("env:CANARY").reveal()
    raw = msgspec.json.encode({"a": canary, "b": 1})
    assert msgspec.json.decode(strike_json(raw)) == {"a": "[secret env:CANARY]", "b": 1}


# --- graphs ------------------------------------------------------------------------------------------------------


def test_a_document_names_secrets_for_steps_and_for_headers(tmp_path: Path, canary: str) -> None:
    app = leaky_app(f"sqlite:///{tmp_path}/weft.db", tmp_path)
    app.graph(
        {
            "weft": "graph/1",
            "name": "paper",
            "nodes": {"use": {"step": "use", "with": {"key": {"$secret": "env:CANARY"}, "how": "return"}}},
        }
    )

    async def scene() -> None:
        async with app:
            await (await app.start("paper", id="run")).result()

    asyncio.run(scene())
    assert (tmp_path / "used").read_text() == canary
    for trace in traces(canary):
        assert trace not in everywhere(tmp_path)


def test_a_header_of_a_request_is_revealed_when_it_is_sent_and_not_before(
    tmp_path: Path, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", "127.0.0.1")
    monkeypatch.setenv("TOKEN", "Bearer once-in-a-header")
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.extend(line for line in head.splitlines() if line.lower().startswith("authorization"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def scene() -> None:
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        app = weft.App(f"sqlite:///{tmp_path}/weft.db")
        call = {"url": f"http://127.0.0.1:{port}/", "headers": {"authorization": {"$secret": "env:TOKEN"}}}
        app.graph({"weft": "graph/1", "name": "call", "nodes": {"ask": {"http": call}}})
        async with listening, app:
            await (await app.start("call", id="run")).result()

    asyncio.run(scene())
    assert [line.lower() for line in seen] == ["authorization: bearer once-in-a-header"]
    assert b"once-in-a-header" not in everywhere(tmp_path)
    assert b"env:TOKEN" in everywhere(tmp_path)
