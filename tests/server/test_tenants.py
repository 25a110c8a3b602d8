"""Every route, with every scope, for one's own runs and for those of another tenant: made from the table of routes.

A route without a rule here fails: whoever adds one says what it is about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import pytest

import weft
from tests.bundles.kit import unzipped
from tests.server.keyring import Caller, caller
from tests.server.kit import API, SECONDS_MAX, Answer, Server, quoted, serving
from tests.server.shop import shop
from tests.server.test_live import heard
from weft.core.ids import tenant_prefix
from weft.runtime.tenancy import check_tenant
from weft.server.identity import AccessScope
from weft.server.route_table import ROUTES
from weft.server.router import ApiRoute

# What the path of a route names: nothing of a tenant's, a run, something of a run, or a schedule. Or the route is the
# operator's.
OPEN, SHARED, RUN, PLACE, SCHEDULE, OPERATORS = "open", "shared", "run", "place", "schedule", "operators"
OWNED = (RUN, PLACE, SCHEDULE)
RULES = {
    "startRun": SHARED, "listRuns": SHARED, "countRuns": SHARED,
    "listWorkflows": SHARED, "listVersions": SHARED, "getVersion": SHARED,
    "listNodeTypes": SHARED, "listSteps": SHARED, "getStep": SHARED, "plan": SHARED, "drawCatalogue": SHARED,
    "listApprovals": SHARED, "mcp": SHARED,
    "getMe": SHARED, "getWaits": SHARED, "listDeadLetters": SHARED, "followAll": SHARED, "bulk": SHARED,
    "getRun": RUN, "listEvents": RUN, "getTree": RUN, "getPicture": RUN, "getState": RUN, "getValue": RUN,
    "getStanding": RUN, "getFamily": RUN,
    "listPlaces": RUN, "getPlace": RUN, "getTimeline": RUN, "getResult": RUN, "explainRun": RUN, "sendMessage": RUN,
    "sendRequest": RUN, "getAnswer": RUN, "getUnitedPicture": RUN,
    "cancelRun": RUN, "pauseRun": RUN, "resumeRun": RUN, "retryRun": RUN, "forkRun": RUN, "diffRuns": RUN,
    "followRun": RUN, "listStreams": RUN, "readStream": RUN, "followStream": RUN, "patchRun": RUN, "undoPatch": RUN,
    "listLogs": RUN, "followLogs": RUN, "getConversation": RUN,
    "getChanges": RUN, "getPatchRequests": RUN, "getPatchRequest": RUN, "withdrawPatch": RUN,
    "getRunVersions": RUN, "setResult": RUN, "getUsage": RUN, "raiseBudget": RUN,
    "decide": PLACE, "getApproval": PLACE, "makeLinks": PLACE, "requeueDeadLetter": PLACE, "discardDeadLetter": PLACE,
    "exportRun": RUN, "moveRun": RUN, "importBundle": SHARED, "patchWorkflow": SHARED,
    "listTags": SHARED, "getTag": SHARED, "putTag": SHARED, "undoTag": SHARED, "redoTag": SHARED,
    "registerSteps": OPERATORS, "freezePlan": OPERATORS, "updateSteps": OPERATORS, "unregisterStep": OPERATORS,
    "claimTasks": OPERATORS, "keepTask": OPERATORS, "emitOutput": OPERATORS, "completeTask": OPERATORS,
    "failTask": OPERATORS, "metrics": OPERATORS, "home": OPEN,
    "openSession": OPEN, "endSession": OPEN, "beginSignIn": OPEN, "finishSignIn": OPEN,
    "listSchedules": SHARED, "putSchedule": SHARED, "getSchedule": SCHEDULE, "removeSchedule": SCHEDULE,
    "nextTimes": SCHEDULE, "triggerSchedule": SCHEDULE, "backfillSchedule": SCHEDULE, "pauseSchedule": SCHEDULE,
    "resumeSchedule": SCHEDULE, "deleteRun": RUN, "keepRun": RUN, "getHold": RUN, "listAudit": OPERATORS,
    "listHosts": OPERATORS, "listQueues": OPERATORS, "limitQueue": OPERATORS, "listLimits": OPERATORS,
    "listKeys": OPERATORS, "createKey": OPERATORS, "revokeKey": OPERATORS, "getStatus": OPERATORS,
    "acknowledgeLosses": OPERATORS,
    "getSeries": OPERATORS, "listModels": OPERATORS,
    "getPolicy": OPERATORS, "listPolicies": OPERATORS, "setPolicy": OPERATORS, "testPolicy": OPERATORS,
    "listWorkflowSummaries": SHARED, "getWorkflow": SHARED, "getVersionPicture": SHARED, "getVersionStanding": SHARED,
    "getVersionSource": SHARED, "diffVersions": SHARED, "removeTag": SHARED,
    "listTools": SHARED, "acceptTool": SHARED, "discardTool": SHARED, "renameTool": SHARED,
    "acceptToolServer": OPERATORS,
    "listViews": SHARED, "putView": SHARED, "removeView": SHARED, "getHelp": SHARED, "getGraphSchema": SHARED,
    "getStepsSchema": SHARED, "search": SHARED, "getReadFormat": SHARED, "readStore": SHARED,
    "alive": OPEN, "ready": OPEN, "openapi": OPEN, "showLink": OPEN, "followLink": OPEN, "takeWebhook": OPEN,
}  # fmt: skip
BODIES: dict[str, Any] = {
    "startRun": {"workflow": "hello", "input": {"name": "a"}},
    "forkRun": {"id": "same"},
    "sendMessage": {"name": "note"},
    "patchRun": {"patch": {"ops": []}},
    "raiseBudget": {"add": {"tokens": 5}},
    "setResult": {"place": "carrier", "output": 5},
    "sendRequest": {"name": "note"},
    "decide": {"approved": True, "form": {"carrier": "dhl"}},
    "makeLinks": {"by": "ann"},
    "plan": {"goals": ["nothing"]},
    "putTag": {"version": "1"},
    "registerSteps": {"document": {}},
    "freezePlan": {"name": "frozen", "goals": ["nothing"]},
    "updateSteps": {"document": {}},
    "claimTasks": {"steps": ["x"]},
    "failTask": {"message": "x"},
    "createKey": {"name": "zoe", "scopes": ["read"]},
    "putView": {"query": "status=failed"},
    "readStore": {"reads": [{"read": "directory.find", "arguments": {"id": "same"}}]},
    "emitOutput": {"stream": "s", "chunks": [1]},
    "deleteRun": {"reason": "x"},
    "keepRun": {"reason": "x"},
    "bulk": {"verb": "pause", "ids": ["only-a"], "dry_run": True},
    "putSchedule": {"name": "new", "workflow": "hello", "input": {"name": "a"}, "cron": "0 0 1 1 *"},
    "backfillSchedule": {"from": "2025-01-01T00:00:00Z", "to": "2025-01-02T00:00:00Z"},
}
NAMES = {
    "name": "hello",
    "version": "1",
    "tag": "t",
    "stream": "s",
    "token": "x",
    "step": "s",
    "request": "r",
    "other": "same",
    "number": "1",
    "ref": "event:1:input",
    "asked": "2",
    "queue": "q",
    "a": "1",
    "b": "1",
    "key": "k",
    "code": "run.not_found",
}
PLACES = {"requeueDeadLetter": ":t1", "discardDeadLetter": ":t1"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Two tenants with a run each that asks, under the same id."""
    with serving(shop()) as running:
        for tenant in ("a", "b"):
            admin = caller(running, "ann", "admin", tenant=tenant)
            for run in ("same", f"only-{tenant}"):
                new = {"workflow": "ship", "input": {"order_id": f"secret of {tenant}"}, "id": run}
                assert admin.post(f"{API}/runs", new).status == 201
                while not [one for one in admin.get(f"{API}/approvals").json["approvals"] if one["run"] == run]:
                    time.sleep(0.02)
                yearly = {
                    "name": run,
                    "workflow": "hello",
                    "input": {"name": f"secret of {tenant}"},
                    "cron": "0 0 1 1 *",
                }
                assert admin.post(f"{API}/schedules", yearly).status == 200
                tag = {"version": "1", "reason": f"secret of {tenant}"}
                assert admin.ask("PUT", f"{API}/workflows/hello/tags/{run}", tag).status == 200
                view = {"query": f"q=secret of {tenant}"}
                assert admin.ask("PUT", f"{API}/views/{run}", view).status == 200
            unlucky = {"workflow": "unlucky", "input": {"n": ord(tenant)}, "id": f"dead-{tenant}"}
            assert admin.post(f"{API}/runs", unlucky).status == 201
            while not admin.get(f"{API}/dlq").json["letters"]:
                time.sleep(0.02)
        yield running


@pytest.fixture(scope="module")
def callers(server: Server) -> dict[tuple[str, str], Caller]:
    """Somebody of each tenant, and of none, with each scope."""
    found = {}
    for tenant in ("a", "b", ""):
        for scope in AccessScope:
            if tenant and scope is AccessScope.WORK:
                continue
            found[tenant, str(scope)] = caller(server, f"ann-{scope}", str(scope), tenant=tenant)
    return found


def asked(route: ApiRoute, who: Caller, run: str) -> Answer:
    """Ask for a route about a run."""
    rule = RULES[route.name]
    subject = f"{run}{PLACES.get(route.name, ':carrier')}" if rule == PLACE else run
    named = "name" if rule == SCHEDULE else "id"
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", quoted(subject if name == named else NAMES[name]))
    if route.kind == "live":
        path += "?nothing=1"  # refused where it would be answered for ever
    return who.ask(route.method, path, BODIES.get(route.name, {}) if route.is_write else None)


def test_every_route_has_a_rule() -> None:
    assert {route.name for route in ROUTES} == set(RULES)


def test_the_rules_agree_with_the_table() -> None:
    for route in ROUTES:
        assert (route.scope is None) == (RULES[route.name] == OPEN), route.name
        assert route.operator_only == (RULES[route.name] == OPERATORS), route.name


@pytest.mark.parametrize("route", [one for one in ROUTES if RULES[one.name] != OPEN], ids=lambda one: one.name)
def test_a_route_asks_for_a_key_and_for_its_scope(
    server: Server, callers: dict[tuple[str, str], Caller], route: ApiRoute
) -> None:
    assert asked(route, Caller(server, None), "same").status == (200 if route.anonymous else 401)
    assert asked(route, Caller(server, "weft_nonsense"), "same").status == 401
    for (tenant, scope), who in callers.items():
        if scope not in (str(route.scope), "admin"):
            assert asked(route, who, "same").status == 403, (tenant, scope)


@pytest.mark.parametrize("route", [one for one in ROUTES if RULES[one.name] == OPERATORS], ids=lambda one: one.name)
def test_what_is_about_all_tenants_is_for_no_tenant(callers: dict[tuple[str, str], Caller], route: ApiRoute) -> None:
    for tenant in ("a", "b"):
        assert asked(route, callers[tenant, "admin"], "same").status == 403
    assert asked(route, callers["", "admin"], "same").status not in (401, 403)


@pytest.mark.parametrize("route", [one for one in ROUTES if RULES[one.name] in OWNED], ids=lambda one: one.name)
def test_what_belongs_to_another_tenant_is_not_there(
    server: Server, callers: dict[tuple[str, str], Caller], route: ApiRoute
) -> None:
    before = foreign_logs(server)
    for scope in {str(route.scope), "admin"}:
        for run in (
            "only-b",
            "@b/only-b",
            "@b/same",
            "@a/@b/same",
            "../b/only-b",
            "@a/only-b",
            "@/only-b",
        ):
            answer = asked(route, callers["a", scope], run)
            # A route that is answered for ever is refused for its query first; it is asked for properly below.
            assert answer.status == 404 or (route.kind == "live" and answer.status == 422), (run, answer.raw)
            assert b"secret of b" not in answer.raw
    assert foreign_logs(server) == before


def foreign_logs(server: Server) -> dict[str, int]:
    """How long the logs of what tenant b has from the beginning are.

    Runs that other tests have started may still go on.
    """
    found = logs(server)
    return {run: found[f"@b/{run}"] for run in ("same", "only-b", "dead-b", "schedule/same", "schedule/only-b")}


def logs(server: Server) -> dict[str, int]:
    """How long the log of every run is."""
    return {run.id: run.seq for run in server.app.service.store.content.runs.values()}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "route", [one for one in ROUTES if one.kind == "live" and one.parameters], ids=lambda one: one.name
)
def test_a_stream_of_another_tenant_is_not_there(callers: dict[tuple[str, str], Caller], route: ApiRoute) -> None:
    for run in ("only-b", "@b/only-b"):
        path = route.path.replace("{id}", quoted(run)).replace("{stream}", "s")
        assert callers["a", "read"].get(path).status == 404


@pytest.mark.parametrize(
    "route",
    [one for one in ROUTES if RULES[one.name] in (*OWNED, SHARED) and one.name not in ("cancelRun", "moveRun")],
    ids=lambda one: one.name,
)
def test_what_is_ones_own_is_there_under_the_same_name(callers: dict[tuple[str, str], Caller], route: ApiRoute) -> None:
    # Other cases end "same": then it could really be deleted, and nothing could be withdrawn from it.
    run = "only-a" if route.name in ("makeLinks", "deleteRun", "withdrawPatch") else "same"

    answer = asked(route, callers["a", str(route.scope)], run)

    assert answer.status not in (401, 403)
    if route.name == "getAnswer":
        assert answer.json["detail"] == "same has no request 'r'."
    elif route.name == "getConversation":
        assert "is not a run of an agent" in answer.json["detail"]
    elif route.name in ("getPatchRequest", "withdrawPatch"):
        assert "has no patch 2" in answer.json["detail"]
    elif RULES[route.name] in OWNED and route.name not in PLACES:
        assert answer.status != 404
    assert b"secret of b" not in answer.raw
    assert answer.status < 400 or b"@a/" not in answer.raw, "problems name the run as the tenant does"


# --- lists -------------------------------------------------------------------------------------------------------


def test_lists_show_ones_own_and_the_operator_sees_all(callers: dict[tuple[str, str], Caller]) -> None:
    own = callers["a", "read"]
    assert {run["id"] for run in own.get(f"{API}/runs?workflow=ship").json["runs"]} == {"same", "only-a"}
    assert {run["id"] for run in own.get(f"{API}/runs?prefix=only").json["runs"]} == {"only-a"}
    assert own.get(f"{API}/runs?prefix=@b/").json["runs"] == []
    assert own.get(f"{API}/runs?parent=only-b").status == 404
    assert {one["run"] for one in own.get(f"{API}/approvals").json["approvals"]} <= {"same", "only-a"}
    everything = {run["id"] for run in callers["", "read"].get(f"{API}/runs?workflow=ship").json["runs"]}
    assert everything == {"@a/same", "@a/only-a", "@b/same", "@b/only-b"}


def test_dead_letters_are_ones_own_and_the_operator_sees_all(callers: dict[tuple[str, str], Caller]) -> None:
    def seen(who: str, query: str = "") -> set[str]:
        return {one["run"] for one in callers[who, "read"].get(f"{API}/dlq{query}").json["letters"]}

    assert seen("a") == {"dead-a"}
    assert seen("b") == {"dead-b"}
    assert seen("") == {"@a/dead-a", "@b/dead-b"}
    for run in ("dead-b", "@b/dead-b", "@b/"):
        assert seen("a", f"?run={quoted(run)}") == set()


FOREIGN = ("only-b", "dead-b", "secret of b", "@b")
"""What only tenant b has a reason to see."""


def questions(route: ApiRoute) -> list[str]:
    """Ways to ask a route for what is another tenant's: every text that its query takes, and none."""
    texts = [field.encode_name for field in msgspec.structs.fields(route.query)] if route.query is not None else []
    return [
        "",
        *(f"?{name}={quoted(value)}" for name in texts for value in ("only-b", "dead-b", "@b/", "@b/same", "b")),
    ]


@pytest.mark.parametrize(
    "route",
    [one for one in ROUTES if one.method == "GET" and RULES[one.name] in (SHARED, RUN) and one.kind != "live"],
    ids=lambda one: one.name,
)
def test_no_route_that_reads_tells_a_tenant_of_another(callers: dict[tuple[str, str], Caller], route: ApiRoute) -> None:
    """Made from the table: a new route, or a new parameter of one, is tried as soon as it is there."""
    for query in questions(route):
        path = route.path
        for name in route.parameters:
            path = path.replace(f"{{{name}}}", quoted("same" if name == "id" else NAMES[name]))
        raw = callers["a", "admin"].get(f"{path}{query}").raw
        told = b"".join(unzipped(raw).values()).decode() if raw.startswith(b"PK") else raw.decode()
        asked_for = {word for word in FOREIGN if word in query or quoted(word) in query}
        for word in FOREIGN:
            # A refusal may repeat what was asked for.
            assert word not in told or (word in asked_for and '"status":4' in told), (query, told)


def test_cached_results_of_a_tenant_answer_for_no_other() -> None:
    app = weft.App("memory://")
    done: list[str] = []

    @app.step(gives="total", cache="1h")
    async def price(order_id: str) -> str:
        done.append(order_id)
        return f"price {len(done)}"

    app.goal("priced", price)
    with serving(app) as server:
        results = []
        for tenant in ("a", "b", "a", "b"):
            who = caller(server, f"{tenant}{len(results)}", "start", "read", tenant=tenant)
            run = who.post(f"{API}/runs", {"workflow": "priced", "input": {"order_id": "o-1"}}).json["id"]
            results.append(who.get(f"{API}/runs/{quoted(run)}/result?wait=10").json["output"]["result"]["total"])

    assert results == ["price 1", "price 2", "price 1", "price 2"]


def test_pages_of_a_list_do_not_leave_the_tenant(callers: dict[tuple[str, str], Caller]) -> None:
    found, cursor = [], ""
    while True:
        page = callers["b", "read"].get(f"{API}/runs?workflow=ship&limit=1{cursor}").json
        found += [run["id"] for run in page["runs"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={quoted(page['cursor'])}"
    assert sorted(found) == ["only-b", "same"]
    stolen = callers["b", "read"].get(f"{API}/runs?limit=1").json["cursor"]
    seen = callers["a", "read"].get(f"{API}/runs?cursor={quoted(stolen or 'x')}")
    assert b"only-b" not in seen.raw


def test_the_same_id_and_the_same_key_are_other_runs_for_another_tenant(
    server: Server, callers: dict[tuple[str, str], Caller]
) -> None:
    new = {"workflow": "hello", "input": {"name": "x"}}
    for body, headers in (({**new, "id": "twin"}, {}), (new, {"Idempotency_Key": "k-1"})):
        answers = [callers[tenant, "start"].post(f"{API}/runs", body, **headers) for tenant in ("a", "b", "a")]
        assert [answer.status for answer in answers] == [201, 201, 200]
        assert answers[0].json["id"] == answers[2].json["id"]
    assert {"@a/twin", "@b/twin"} <= set(logs(server))


def test_a_run_that_is_started_under_the_name_of_another_tenant_is_ones_own() -> None:
    with serving(shop()) as server:  # one of its own: other tests look for this name
        new = {"workflow": "hello", "input": {"name": "x"}, "id": "@b/taken"}
        assert caller(server, "ann", "start", tenant="a").post(f"{API}/runs", new).status == 201
        assert "@a/@b/taken" in logs(server)
        assert caller(server, "bob", "read", tenant="b").get(f"{API}/runs/taken").status == 404


def test_children_belong_to_the_tenant_of_their_parent_whatever_they_are_called(
    server: Server, callers: dict[tuple[str, str], Caller]
) -> None:
    admin = callers["a", "admin"]
    assert admin.post(f"{API}/runs", {"workflow": "family", "id": "parent"}).status == 201
    assert admin.get(f"{API}/runs/parent/result?wait=10").json["status"] == "completed"
    assert "@a/parent.child" in logs(server)
    assert admin.get(f"{API}/runs/parent.child").json["parent"] == "parent"
    assert {run["id"] for run in admin.get(f"{API}/runs?parent=parent").json["runs"]} == {"parent.child"}
    assert callers["b", "admin"].get(f"{API}/runs/parent.child").status == 404


def test_a_child_with_a_name_of_its_own_is_still_the_tenants() -> None:
    app = shop()

    @app.workflow
    async def named(ctx: weft.Context) -> Any:
        return await ctx.call("hello", {"name": "x"}, id="@b/mine")

    with serving(app) as server:
        a, b = (caller(server, "x", "admin", tenant=tenant) for tenant in ("a", "b"))
        a.post(f"{API}/runs", {"workflow": "named", "id": "n"})
        assert a.get(f"{API}/runs/n/result?wait=10").json["status"] == "completed"
        assert "@a/@b/mine" in logs(server)
        assert b.get(f"{API}/runs/mine").status == 404


# --- what a run waits for --------------------------------------------------------------------------------------------


def limited() -> weft.App:
    app = weft.App("memory://")

    @app.step(limit=weft.Limit(concurrency=1))
    async def call() -> None:
        await asyncio.sleep(3600)

    @app.workflow
    async def calling() -> None:
        await call()

    @app.workflow(limit=weft.Limit(concurrency=1))
    async def alone(ctx: weft.Context) -> None:
        await ctx.sleep("1h")

    return app


def test_a_tenant_learns_what_its_runs_wait_for_and_nothing_of_the_runs_ahead() -> None:
    with serving(limited()) as server:
        a, b, operator = (caller(server, "x", "admin", tenant=tenant) for tenant in ("a", "b", ""))
        for one, run in ((a, "first"), (b, "second")):
            for workflow in ("calling", "alone"):
                assert one.post(f"{API}/runs", {"workflow": workflow, "id": f"{run}-{workflow}"}).status == 201
                if one is a:
                    while operator.get(f"{API}/runs/@a%2Ffirst-{workflow}").json["status"] == "pending":
                        time.sleep(0.02)
        while not operator.get(f"{API}/runs/@b%2Fsecond-calling/explain").json["waiting"]:
            time.sleep(0.02)

        running = a.get(f"{API}/runs/first-calling/explain")
        waiting = b.get(f"{API}/runs/second-calling/explain")
        pending = b.get(f"{API}/runs/second-alone/explain")

        assert (running.status, waiting.status, pending.status) == (200, 200, 200)
        texts = [str(one.json) for one in (running, waiting, pending)]
        assert "limit" in texts[1]
        assert "limit" in texts[2]
        assert "first-calling" in str(operator.get(f"{API}/runs/@b%2Fsecond-calling/explain").json)
        assert "first" not in texts[1] + texts[2]
        assert all("no running host" not in text for text in texts)
        assert a.post(f"{API}/runs/first-calling/cancel", {}).status < 300
        assert b.post(f"{API}/runs/second-calling/cancel", {}).status < 300


# --- live --------------------------------------------------------------------------------------------------------


def test_a_feed_carries_ones_own_runs_only(server: Server, callers: dict[tuple[str, str], Caller]) -> None:
    seen: list[str] = []

    async def listen() -> None:
        headers = callers["a", "read"]._headers
        timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
        path = f"{server.url}{API}/live?workflow=hello"
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(path, headers=headers) as response:
            assert response.status == 200
            async for event in heard(response.content):
                if event.event == "ready":
                    await asyncio.to_thread(start_two)
                elif "run" in event.data:
                    seen.append(event.data["run"])
                    if event.event == "run_completed":
                        return

    def start_two() -> None:
        for tenant in ("b", "a"):
            new = {"workflow": "hello", "input": {"name": "x"}, "id": f"live-{tenant}"}
            assert callers[tenant, "start"].post(f"{API}/runs", new).status == 201
            callers[tenant, "read"].get(f"{API}/runs/live-{tenant}/result?wait=10")

    asyncio.run(listen())
    assert set(seen) == {"live-a"}


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["acme", "a", "A-1_b.c", "0x"])
def test_names_of_tenants(name: str) -> None:
    assert tenant_prefix(f"@{check_tenant(name)}/run") == f"@{name}/"


@pytest.mark.parametrize("name", ["a/b", "@a", ".a", "-a", "a b", "é", "x" * 64, "a\n"])
def test_what_cannot_be_the_name_of_a_tenant(name: str) -> None:
    with pytest.raises(weft.UsageError):
        check_tenant(name)


@pytest.mark.parametrize("run", ["order-1", "a/b", "@", "@/x", "@noslash", "x@a/b"])
def test_runs_that_belong_to_no_tenant(run: str) -> None:
    assert tenant_prefix(run) == ""
