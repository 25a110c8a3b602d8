"""The MCP server over HTTP, with clients of the package ``mcp``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import weft
from tests.mcp.clients import answering, ask, client_of, complaint, said
from tests.mcp.office import office
from tests.server.keyring import add_key
from tests.server.kit import API, Server, covers, serving
from weft.core.ids import RunId
from weft.server.limits import RequestLimits


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that waits shortly, open to everybody here."""
    with serving(office(), limits=RequestLimits(wait_seconds=10)) as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server that hardly waits for runs."""
    with serving(office(), limits=RequestLimits(wait_seconds=0.05)) as running:
        yield running


@pytest.fixture(scope="module")
def closed() -> Iterator[Server]:
    """A server with keys."""
    with serving(office(), limits=RequestLimits(wait_seconds=10)) as running:
        add_key(running, "boss", "admin")
        yield running


async def call(server: Server, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async with client_of(server, **options) as client:
        return await client.call_tool(tool, arguments or {})


# --- what is offered ----------------------------------------------------------------------------------------------


@covers("mcp")
def test_only_workflows_that_say_so_are_tools(server: Server) -> None:
    async def work() -> None:
        async with client_of(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"greet", "book", "refund", "run_status", "run_result", "run_cancel", "run_send"} <= set(tools)
            assert "secret_plan" not in tools
            greet = tools["greet"]
            assert greet.description is not None
            assert greet.description.startswith("Greets somebody.\n\n")
            assert "programmers" not in greet.description
            assert set(greet.input_schema["properties"]) == {"name", "tail", "run_id"}
            assert greet.input_schema["required"] == ["name"]
            assert greet.output_schema is not None
            assert greet.output_schema["properties"]["result"] == {"type": "string"}

    ask(work())


def test_a_project_may_name_what_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.weft]\nmcp = ["secret_plan"]\n')
    monkeypatch.chdir(tmp_path)

    assert said(ask(call(server, "secret_plan")))["result"] == 1


def test_a_project_may_name_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.weft]\nmcp = ["support"]\n')
    monkeypatch.chdir(tmp_path)
    app = weft.App("memory://")
    app.model("fast", url="http://127.0.0.1:9/v1", retries=weft.Retry(1))
    app.agent("support", model="fast", system="Helps customers.\n\nBe polite.", prompt="Help ${name}.")

    async def work() -> None:
        async with client_of(offered) as client:
            tool = {tool.name: tool for tool in (await client.list_tools()).tools}["support"]
            assert tool.input_schema["required"] == ["name"]
            assert (tool.description or "").startswith("Helps customers.\n\nStarts a durable run")
            failed = await client.call_tool("support", {"name": "ann"})
            assert failed.is_error
            assert failed.structured_content is not None
            assert failed.structured_content["error"]["code"] == "model.unavailable"

    with serving(app, limits=RequestLimits(wait_seconds=10)) as offered:
        ask(work())


def test_a_name_of_no_workflow_is_told_to_the_operator_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.weft]\nmcp = ["secret_plam"]\n')
    monkeypatch.chdir(tmp_path)

    with serving(office()) as running:
        assert said(ask(call(running, "greet", {"name": "ann"})))["result"] == "hello ann!"
    assert 'Did you mean "secret_plan"?' in caplog.text


def test_a_tool_that_is_not_offered_is_unknown(server: Server) -> None:
    async def work() -> None:
        async with client_of(server) as client:
            with pytest.raises(MCPError, match="no tool 'secret_plan'"):
                await client.call_tool("secret_plan", {})

    ask(work())


def test_two_workflows_whose_tools_have_the_same_name_are_refused() -> None:
    app = weft.App("memory://")

    @app.workflow(name="a.b", mcp=True)
    async def first(ctx: weft.Context) -> int:
        return 1

    @app.workflow(name="a_b", mcp=True)
    async def second(ctx: weft.Context) -> int:
        return 2

    with serving(app) as running:
        assert "would be called a_b" in complaint(ask(call(running, "a_b")))


# --- starting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_tool_starts_a_run_and_returns_its_result(server: Server, mode: str) -> None:
    found = said(ask(call(server, "greet", {"name": "ann"}, mode=mode)))

    assert found["status"] == "completed"
    assert found["result"] == "hello ann!"
    assert server.get(f"{API}/runs/{found['run_id']}").json["status"] == "completed"


def test_arguments_and_results_may_be_structs(server: Server) -> None:
    found = said(ask(call(server, "book", {"trip": {"city": "Oslo", "nights": 2}})))

    assert found["result"] == {"hotel": "Grand Oslo", "nights": 2}


def test_the_same_id_and_arguments_are_the_same_run(server: Server) -> None:
    first = said(ask(call(server, "greet", {"name": "bob", "run_id": "bob-1"})))
    again = said(ask(call(server, "greet", {"name": "bob", "run_id": "bob-1"})))

    assert first == again
    assert first["run_id"] == "bob-1"
    assert "bob-1" in complaint(ask(call(server, "greet", {"name": "eve", "run_id": "bob-1"})))


def test_wrong_arguments_are_told_back_and_nothing_is_started(server: Server) -> None:
    before = len(server.get(f"{API}/runs?workflow=greet&limit=500").json["runs"])

    assert "name" in complaint(ask(call(server, "greet", {"nam": "ann"})))
    assert len(server.get(f"{API}/runs?workflow=greet&limit=500").json["runs"]) == before


def test_a_run_that_fails_is_an_error_with_its_reason(server: Server) -> None:
    result = ask(call(server, "give_up"))

    assert result.is_error
    assert result.structured_content["status"] == "failed"
    assert "no way" in result.structured_content["error"]["message"]


def test_progress_is_told_while_a_run_works(server: Server) -> None:
    heard: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        if len(heard) == 1:
            server.post(f"{API}/runs/quote-1/messages", {"name": "quote", "body": 7})

    async def work() -> Any:
        async with client_of(server) as client:
            arguments = {"order": "o", "run_id": "quote-1"}
            return await client.call_tool("wait_for_quote", arguments, progress_callback=note)

    assert said(ask(work()))["result"] == 7
    assert heard
    assert "quote" in (heard[0][1] or "")


# --- runs that take longer ----------------------------------------------------------------------------------------


def test_a_run_that_takes_longer_is_asked_for_later(hasty: Server) -> None:
    async def work() -> None:
        async with client_of(hasty) as client:
            started = said(await client.call_tool("wait_for_quote", {"order": "o"}))
            run = {"run_id": started["run_id"]}
            assert started["status"] == "running"
            assert "quote" in started["summary"]
            assert said(await client.call_tool("run_status", run))["waiting"][0]["for"]
            assert said(await client.call_tool("run_result", run))["status"] == "running"
            await client.call_tool("run_send", {**run, "name": "quote", "body": 5})
            done = said(await client.call_tool("run_result", {**run, "wait": 20}))
            while done["status"] != "completed":
                done = said(await client.call_tool("run_result", {**run, "wait": 20}))
            assert done["result"] == 5

    ask(work())


def test_a_run_can_be_cancelled(hasty: Server) -> None:
    async def work() -> None:
        async with client_of(hasty) as client:
            run = {"run_id": said(await client.call_tool("wait_for_quote", {"order": "o"}))["run_id"]}
            await client.call_tool("run_cancel", {**run, "reason": "too late"})
            result = await client.call_tool("run_result", run)
            while result.structured_content["status"] != "cancelled":
                result = await client.call_tool("run_result", {**run, "wait": 1})
            assert result.is_error
            assert result.structured_content["summary"] == "too late"

    ask(work())


def test_a_client_that_gives_up_does_not_end_its_run(server: Server) -> None:
    async def work() -> None:
        async with client_of(server) as client:
            told = asyncio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                told.set()

            call = asyncio.ensure_future(
                client.call_tool("wait_for_quote", {"order": "o", "run_id": "left"}, progress_callback=note)
            )
            await told.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await client.call_tool("run_send", {"run_id": "left", "name": "quote", "body": 3})
            assert said(await client.call_tool("run_result", {"run_id": "left", "wait": 20}))["result"] == 3

    ask(work())


# --- questions ----------------------------------------------------------------------------------------------------


def test_a_question_of_an_awaited_run_is_a_form_for_a_person(server: Server) -> None:
    forms: list[Any] = []

    found = said(ask(call(server, "refund", {"cents": 5}, elicitation_callback=answering(forms, {"approved": True}))))

    assert found["result"] == "paid by local"
    (form,) = forms
    assert form.message.startswith("Give back 5 cents?")
    assert '"cents":5' in form.message.replace(" ", "")
    assert form.requested_schema["required"] == ["approved"]


def test_a_person_may_say_no_with_a_reason(server: Server) -> None:
    callback = answering([], {"approved": False, "reason": "too much"})

    found = said(ask(call(server, "refund", {"cents": 9}, elicitation_callback=callback)))

    assert found["result"] == "refused by local"


def test_a_person_who_decides_nothing_leaves_the_question_open(server: Server) -> None:
    found = said(ask(call(server, "refund", {"cents": 1}, elicitation_callback=answering([], "decline"))))

    assert found["status"] == "running"
    assert found["questions"][0]["title"] == "Give back 1 cents?"


def test_a_client_without_forms_gets_the_question_as_text(hasty: Server) -> None:
    found = said(ask(call(hasty, "refund", {"cents": 2})))

    assert found["questions"][0]["title"] == "Give back 2 cents?"


def test_an_answer_that_does_not_fit_is_asked_for_again(server: Server) -> None:
    forms: list[Any] = []
    callback = answering(forms, {"approved": True}, {"approved": True, "city": "Rome"})

    found = said(ask(call(server, "ship", elicitation_callback=callback)))

    assert found["result"] == "Rome"
    assert "not accepted" in forms[1].message
    assert set(forms[0].requested_schema["properties"]) == {"approved", "city", "nights", "reason"}


def test_a_question_of_a_child_run_is_asked_too(server: Server) -> None:
    callback = answering([], {"approved": True})

    assert said(ask(call(server, "ask_a_child", elicitation_callback=callback)))["result"] == "paid by local"


def test_a_state_that_this_server_did_not_make_is_refused(server: Server) -> None:
    async def work() -> Any:
        async with client_of(server) as client:
            return await client.session.call_tool("refund", {"cents": 1}, request_state="{}", allow_input_required=True)

    assert "not made by this server" in complaint(ask(work()))


# --- keys ---------------------------------------------------------------------------------------------------------


def test_a_closed_server_wants_a_key(closed: Server) -> None:
    assert closed.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401


def test_a_caller_sees_the_tools_of_its_scopes(closed: Server) -> None:
    async def names(*scopes: str) -> set[str]:
        async with client_of(closed, add_key(closed, f"k-{'-'.join(scopes)}", *scopes)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert ask(names("read")) == {"run_status", "run_result"}
    assert {"greet", "run_send"} <= ask(names("read", "start"))
    assert ask(names("read", "decide")) == {"run_status", "run_result", "questions", "decide"}
    assert "run_cancel" in ask(names("read", "operate"))


def test_a_caller_sees_only_runs_that_it_started(closed: Server) -> None:
    ann, eve = (add_key(closed, name, "read", "start", "operate") for name in ("ann", "eve"))

    async def work() -> None:
        async with client_of(closed, ann) as client:
            run = said(await client.call_tool("greet", {"name": "ann", "run_id": "of-ann"}))
            assert run["result"] == "hello ann!"
            assert (await client.read_resource("weft://runs/of-ann")).contents
        async with client_of(closed, eve) as client:
            for tool in ("run_status", "run_result", "run_cancel"):
                assert "no run 'of-ann'" in complaint(await client.call_tool(tool, {"run_id": "of-ann"}))
            sent = {"run_id": "of-ann", "name": "x"}
            assert "no run 'of-ann'" in complaint(await client.call_tool("run_send", sent))
            same = await client.call_tool("greet", {"name": "ann", "run_id": "of-ann"})
            assert "Somebody else" in complaint(same)
            with pytest.raises(MCPError, match="no run"):
                await client.read_resource("weft://runs/of-ann")
            listed = {str(one.uri) for one in (await client.list_resources()).resources}
            assert "weft://runs/of-ann" not in listed

    ask(work())


def test_tenants_do_not_see_each_other(closed: Server) -> None:
    scopes = ("read", "start", "decide")
    here = add_key(closed, "tom", *scopes, tenant="t1")
    there = add_key(closed, "tom", *scopes, tenant="t2")

    async def work() -> None:
        async with client_of(closed, here) as client:
            found = said(await client.call_tool("greet", {"name": "tom", "run_id": "shared"}))
            assert found["run_id"] == "shared"
        async with client_of(closed, there) as client:
            assert "shared" in complaint(await client.call_tool("run_status", {"run_id": "shared"}))
            other = said(await client.call_tool("greet", {"name": "other", "run_id": "shared"}))
            assert other["result"] == "hello other!"

    ask(work())
    assert closed.inside(closed.app.service.row(RunId("@t1/shared"))).status == "completed"


def test_who_may_decide_answers_for_others_but_never_for_itself(closed: Server) -> None:
    starter = add_key(closed, "starter", "read", "start", "decide")
    judge = add_key(closed, "judge", "read", "decide")

    async def work() -> None:
        async with client_of(closed, starter) as client:
            call = asyncio.ensure_future(client.call_tool("refund", {"cents": 3, "run_id": "judged"}))
            listed: list[Any] = []
            async with client_of(closed, judge) as other:
                while not listed:
                    listed = said(await other.call_tool("questions", {}))["questions"]
                    listed = [one for one in listed if one["run"] == "judged"]
                own = await client.call_tool("questions", {})
                assert [one for one in said(own)["questions"] if one["run"] == "judged"] == []
                decision = {"id": listed[0]["id"], "approved": True, "digest": listed[0]["digest"]}
                assert "another key" in complaint(await client.call_tool("decide", decision))
                await other.call_tool("decide", decision)
            assert said(await call)["result"] == "paid by judge"

    ask(work())


def test_without_the_scope_decide_nobody_is_asked(closed: Server) -> None:
    key = add_key(closed, "quiet", "read", "start")
    forms: list[Any] = []

    async def work() -> None:
        async with client_of(closed, key, elicitation_callback=answering(forms)) as client:
            call = asyncio.ensure_future(client.call_tool("refund", {"cents": 4, "run_id": "quiet-1"}))
            done = False
            while not done:
                found = await client.call_tool("run_status", {"run_id": "quiet-1"})
                done = bool(found.structured_content and found.structured_content["questions"])
            await client.close() if hasattr(client, "close") else None
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

    ask(work())
    assert forms == []


# --- resources ----------------------------------------------------------------------------------------------------


def test_runs_and_workflows_are_resources(server: Server) -> None:
    async def work() -> None:
        async with client_of(server) as client:
            await client.call_tool("greet", {"name": "ann", "run_id": "a/b c"})
            listed = {str(one.uri) for one in (await client.list_resources()).resources}
            assert {"weft://workflows/greet", "weft://runs/a%2Fb%20c"} <= listed
            assert "weft://workflows/secret_plan" not in listed
            run = (await client.read_resource("weft://runs/a%2Fb%20c")).contents[0]
            assert '"status":"completed"' in run.text  # type: ignore[union-attr]
            events = (await client.read_resource("weft://runs/a%2Fb%20c/events")).contents[0]
            assert "run_started" in events.text  # type: ignore[union-attr]
            stream = (await client.read_resource("weft://runs/a%2Fb%20c/streams/out")).contents[0]
            assert '"chunks":[]' in stream.text  # type: ignore[union-attr]
            workflow = (await client.read_resource("weft://workflows/greet")).contents[0]
            assert "Greets somebody" in workflow.text  # type: ignore[union-attr]
            templates = await client.list_resource_templates()
            assert len(templates.resource_templates) == 4
            for uri in ("weft://runs/none", "weft://workflows/secret_plan", "weft://nothing", "http://x"):
                with pytest.raises(MCPError):
                    await client.read_resource(uri)

    ask(work())


def test_a_client_hears_of_changes_of_its_runs(server: Server) -> None:
    async def work() -> None:
        async with client_of(server) as client:
            call = asyncio.ensure_future(client.call_tool("wait_for_quote", {"order": "o", "run_id": "heard"}))
            found = await client.call_tool("run_status", {"run_id": "heard"})
            while found.is_error:
                found = await client.call_tool("run_status", {"run_id": "heard"})
            async with client.listen(resource_subscriptions=["weft://runs/heard"]) as events:
                await client.call_tool("run_send", {"run_id": "heard", "name": "quote", "body": 1})
                async for event in events:
                    assert event.uri == "weft://runs/heard"  # type: ignore[union-attr]
                    break
            assert said(await call)["result"] == 1

    ask(work())


# --- requests that are no MCP -------------------------------------------------------------------------------------


def test_garbage_is_refused_and_the_server_goes_on(server: Server) -> None:
    for raw in (b"", b"nonsense", b"[" * 100, b'{"jsonrpc":"2.0"}', b"[]", b"\xff"):
        answer = server.ask("POST", "/mcp", raw=raw, content_type="application/json", accept="application/json")
        assert 400 <= answer.status < 500, (raw, answer.status, answer.raw)
    assert server.get("/mcp").status == 405
    assert said(ask(call(server, "greet", {"name": "ann"})))["status"] == "completed"
