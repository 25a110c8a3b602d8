"""What people can ask the database: views over a real run, attributes by their index."""

import asyncio
import re
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

import weft
from tests import servers
from tests.contract.kit import HERE, THERE, append, event, new
from weft.core.ids import Millis, RunUid
from weft.ports.run_query import RunQuery
from weft.ports.tasks import TaskOffer
from weft.stores.postgres import PostgresStore, directory, hosts, inboxes, run_search


@pytest.fixture
def url() -> str:
    found = servers.database("views")

    async def open_and_close() -> None:
        store = PostgresStore(found, durability="fast")
        await store.open()
        await store.close()

    asyncio.run(open_and_close())
    servers.empty(found)
    return found


def ask(url: str, text: str, *values: Any) -> list[dict[str, Any]]:
    async def fetch() -> list[dict[str, Any]]:
        connection = await asyncpg.connect(url)
        try:
            return [dict(row) for row in await connection.fetch(text, *values)]
        finally:
            await connection.close()

    return asyncio.run(fetch())


def play(url: str) -> None:
    """Two orders: one approved and shipped, one whose card is declined."""
    app = weft.App(url)

    @app.step(retries=0)
    async def charge(order: str, cents: int) -> str:
        if order == "o-2":
            raise ValueError("declined")
        return f"receipt of {cents}"

    @app.workflow
    async def order(ctx: weft.Context, name: str) -> str:
        await ctx.set(customer=name)
        receipt = await charge(name, 4200)
        answer = await ctx.ask("ship", title="Ship it?", timeout="2d")
        return f"{receipt}, {answer.approved}"

    async def scenario() -> None:
        async with app:
            first = await app.start(order("o-1"), id="o-1")
            second = await app.start(order("o-2"), id="o-2")
            with pytest.raises(weft.RunFailed):
                await second.result()
            while not ask_is_open():
                await asyncio.sleep(0.01)
            await first.cancel("enough")
            with pytest.raises(weft.RunCancelled):
                await first.result()

    def ask_is_open() -> bool:
        return bool(servers.run(_open_questions(url)))

    asyncio.run(scenario())


async def _open_questions(url: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        found: list[Any] = await connection.fetch(
            "SELECT run, title FROM weft.weft_approvals WHERE status = 'open' AND due_at > now() + interval '1 day'"
        )
        return found
    finally:
        await connection.close()


def test_the_views_tell_the_story_of_real_runs(url: str) -> None:
    play(url)

    runs = ask(
        url, "SELECT id, workflow, status, attributes ->> 'customer' AS customer FROM weft.weft_runs ORDER BY id"
    )
    assert runs == [
        {"id": "o-1", "workflow": "order", "status": "cancelled", "customer": "o-1"},
        {"id": "o-2", "workflow": "order", "status": "failed", "customer": "o-2"},
    ]
    done = ask(
        url, "SELECT run, step, status, output::text, failure ->> 'message' AS why FROM weft.weft_tasks ORDER BY run"
    )
    assert done == [
        {"run": "o-1", "step": "charge", "status": "succeeded", "output": '"receipt of 4200"', "why": None},
        {"run": "o-2", "step": "charge", "status": "failed", "output": None, "why": "declined"},
    ]
    asked = ask(url, "SELECT run, title, status FROM weft.weft_approvals")
    assert asked == [{"run": "o-1", "title": "Ship it?", "status": "closed"}]
    kinds = ask(url, "SELECT seq, kind, data FROM weft.weft_events WHERE run = 'o-2' ORDER BY seq")
    assert [row["seq"] for row in kinds] == list(range(1, len(kinds) + 1))
    assert (kinds[0]["kind"], kinds[-1]["kind"]) == ("run_started", "run_failed")
    (times,) = ask(
        url,
        "SELECT ended_at >= created_at AND ended_at > now() - interval '1 minute' AS right "
        "FROM weft.weft_runs WHERE id = 'o-2'",
    )
    assert times["right"]


def test_tasks_of_graphs_and_goals_are_found_in_the_records_that_lead_to_them(url: str) -> None:
    app = weft.App(url)

    @app.step(gives="price")
    async def look_up() -> int:
        return 5

    @app.step(gives="invoice")
    async def bill(price: int) -> str:
        return f"{price} EUR"

    nodes = {"first": {"step": "look_up"}, "second": {"step": "bill", "with": {"price": 7}}}
    edges = [{"from": "first", "to": "second"}]
    graph = app.graph({"weft": "graph/1", "name": "billing", "nodes": nodes, "edges": edges})
    goal = app.goal("invoicing", bill)

    async def scenario() -> None:
        async with app:
            await (await app.start(graph, id="graph")).result()
            await (await app.start(goal, id="goal")).result()

    asyncio.run(scenario())

    rows = ask(url, "SELECT run, step, status, output::text FROM weft.weft_tasks ORDER BY run, task")
    assert [tuple(row.values()) for row in rows] == [
        ("goal", "look_up", "succeeded", "5"),
        ("goal", "bill", "succeeded", '"5 EUR"'),
        ("graph", "look_up", "succeeded", "5"),
        ("graph", "bill", "succeeded", '"7 EUR"'),
    ]


def test_a_shared_task_shows_where_it_waits_and_who_has_it(url: str) -> None:
    async def scenario() -> None:
        store = PostgresStore(url, durability="fast")
        await store.open()
        body = b'{"kind":"task_scheduled","step":"draw","input":{"a":1}}'
        change = append(create=new(), events=[event(1, body), event(2, body)])
        await store.log.commit([change], HERE)
        offers = [
            TaskOffer(
                uid=change.uid, task=n, attempt=1, delivery=1, step="draw", queue="gpu", body=b"1", epoch=change.epoch
            )
            for n in (1, 2)
        ]
        await store.tasks.offer(offers)
        await store.tasks.take(THERE, queues=["gpu"], steps=["draw"], now=Millis(0), limit=1)
        await store.close()

    asyncio.run(scenario())

    rows = ask(url, "SELECT task, status, queued_for, host FROM weft.weft_tasks ORDER BY task")
    assert rows == [
        {"task": 1, "status": "open", "queued_for": "gpu", "host": THERE},
        {"task": 2, "status": "open", "queued_for": "gpu", "host": None},
    ]


def planned(url: str, text: str, *values: Any) -> str:
    """How the server would answer, once there is enough for it to choose."""

    async def explain() -> str:
        connection = await asyncpg.connect(url, server_settings={"search_path": "weft"})
        try:
            await connection.execute("SET enable_seqscan = off")
            rows = await connection.fetch(f"EXPLAIN {text}", *values)
            return "\n".join(row[0] for row in rows)
        finally:
            await connection.close()

    return asyncio.run(explain())


FLOW = (["order"], ["1"])


@pytest.mark.parametrize(
    ("text", "values", "indexes"),
    [
        (directory.CLAIMABLE, (*FLOW, ["h"], 0, 10), {"runs_owned", "runs_due", "runs_mail"}),
        (directory.NEXT_WAKE, (*FLOW, ["h"]), {"runs_due"}),
        (inboxes.WAITING, ("h", 10), {"runs_mail"}),
        (inboxes.NEWS, (*FLOW, ["h"], 0, 1, "h", 10), {"runs_owned", "runs_due", "runs_mail"}),
        (hosts._BUSY, (), {"runs_owned", "tasks_claimed"}),
        ("SELECT * FROM weft_runs WHERE attributes @> '{\"customer\": 1}'", (), {"runs_attributes"}),
    ],
    ids=["claimable", "next wake", "waiting mail", "news", "busy", "attributes"],
)
def test_looking_for_work_uses_its_index(url: str, text: str, values: tuple[Any, ...], indexes: set[str]) -> None:
    plan = planned(url, text, *values)

    assert {name for name in indexes if name in plan} == indexes, plan
    assert "Seq Scan on runs" not in plan


def test_runs_with_a_priority_that_sleep_are_not_visited_to_find_those_that_are_due(url: str) -> None:
    plan = planned(url, directory.CLAIMABLE, *FLOW, [], 0, 10)

    condition = r"\(\(priority = k.rank\) AND \(wake_at <= "
    assert re.search(rf"runs_due_ranked on runs .*\n\s+Index Cond: {condition}", plan), plan


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (RunQuery(), "runs_newest"),
        (RunQuery(status="failed"), "runs_status"),
        (RunQuery(workflow="order", status="failed", version="1"), "runs_workflow"),
        (RunQuery(parent=RunUid("p")), "runs_children"),
        (RunQuery(faulty=True), "runs_fault"),
    ],
    ids=["newest", "status", "workflow", "children", "fault"],
)
def test_a_list_is_read_from_an_index_in_its_order(url: str, query: RunQuery, index: str) -> None:
    text, values = run_search.page_text([query], (1, "u"), 10)

    plan = planned(url, text, *values)

    assert f"Index Scan Backward using {index} on runs" in plan, plan
    assert "Seq Scan on runs" not in plan


def test_looking_for_tasks_uses_its_index(url: str) -> None:
    """It is asked inside a function: what is planned here is the text that the server has of it."""
    (found,) = ask(url, "SELECT prosrc FROM pg_proc WHERE proname = 'free_tasks'")
    text = found["prosrc"]
    for name, value in (("names", "$1::text[]"), ("known", "$2::text[]"), ("at_time", "$3"), ("most", "$4")):
        text = re.sub(rf"\b{name}\b", value, text)

    plan = planned(url, text, ["q"], ["s"], 0, 1)

    assert "tasks_offered" in plan, plan
    assert "Seq Scan" not in plan


def test_a_plain_append_changes_no_index_of_runs(url: str) -> None:
    """Its columns are in none of them, so a plain append writes the row beside itself, and its events."""
    rows = ask(
        url,
        "SELECT DISTINCT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        "AND a.attnum = ANY (i.indkey) WHERE i.indrelid = 'weft.runs'::regclass",
    )

    assert not {row["attname"] for row in rows} & {"seq", "updated_at"}


def test_searching_by_attributes_finds_what_it_says(url: str) -> None:
    async def scenario() -> list[str]:
        store = PostgresStore(url, durability="fast")
        await store.open()
        await store.log.create([new(f"{n}", owner=None, attributes={"n": n, "tags": [n, "x"]}) for n in range(50)])
        page = await store.directory.search(RunQuery(where={"n": 7, "tags": [7, "x"]}))
        part = await store.directory.search(RunQuery(where={"tags": [7]}))
        await store.close()
        return [row.uid for row in (*page.rows, *part.rows)]

    assert asyncio.run(scenario()) == ["7"]
