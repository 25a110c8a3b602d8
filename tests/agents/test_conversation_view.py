"""The conversation of a run as people read it: in Python, over the API and on the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

import weft
from tests.agents.scripted_server import scripted, text, tool_calls
from tests.agents.shop import Shop
from tests.server.kit import API, covers, serving
from tests.work import lines_of
from weft.cli import main
from weft.core.ids import RunId
from weft.observe.conversation import AskedTurns, ConversationView, TurnPlaces, read_conversation
from weft.observe.place_log import PlaceLog
from weft.observe.viewed_run import ViewedRun
from weft.testing import World, calls


def log_of(world: World, app: weft.App, run_id: str) -> PlaceLog:
    async def read() -> PlaceLog:
        viewed = ViewedRun()
        await viewed.refresh(app.service, await app.service.row(RunId(run_id)))
        return viewed.log

    return world.perform(read)


def view(world: World, app: weft.App, run_id: str, **options: int) -> ConversationView:
    world.settle()
    log = log_of(world, app, run_id)

    async def read() -> ConversationView:
        asked = AskedTurns(**{"seq": log.seq, **options})
        return await read_conversation(app.service, await app.service.row(RunId(run_id)), log, asked)

    return world.perform(read)


def test_it_has_calls_with_their_results_and_who_approved_them() -> None:
    shop = Shop(system="You help.")
    world = World(shop.app)
    world.fake_model(
        "fast",
        calls(("find_order", {"order_id": "o-1"}), ("nothing", {}), says="Let me look."),
        calls(refund={"order_id": "o-1", "cents": 5}),
        calls(refund={"order_id": "o-2", "cents": 9}),
        "Done.",
    )
    run = world.start(shop.support("money!"))

    asked = view(world, shop.app, run.id)
    assert (asked.agent, asked.system, asked.prompt, asked.is_over) == ("support", "You help.", "money!", False)
    assert [call.status for turn in asked.turns for call in turn.calls] == ["done", "refused", "asked"]
    assert asked.turns[1].calls[0].approval == "turn/~1/tools/0/approve"

    run.answer("turn/~1/tools/0/approve", by="fin")
    run.answer("turn/~2/tools/0/approve", by="lee", approved=False, reason="twice")
    run.result()

    ended = view(world, shop.app, run.id)
    assert [turn.text for turn in ended.turns] == ["Let me look.", "", "", "Done."]
    found, unknown = ended.turns[0].calls
    assert found.result == '{"order_id":"o-1","state":"delivered"}'
    assert "no tool" in unknown.result
    approved, refused = ended.turns[1].calls[0], ended.turns[2].calls[0]
    assert (approved.status, approved.approved, approved.by) == ("done", True, ["fin"])
    assert (refused.status, refused.approved, refused.by, refused.reason) == ("refused", False, ["lee"], "twice")
    assert ended.is_over


def test_long_conversations_are_read_in_pages() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", *[calls(find_order={"order_id": str(n)}) for n in range(6)], "Done.")
    run = world.start(shop.support("go"))
    run.result()

    newest = view(world, shop.app, run.id, limit=3)
    assert ([turn.number for turn in newest.turns], newest.before) == ([4, 5, 6], 4)
    assert newest.before is not None
    older = view(world, shop.app, run.id, limit=9, before=newest.before)
    assert ([turn.number for turn in older.turns], older.before) == ([0, 1, 2, 3], None)


def test_it_is_shown_as_it_stood_after_an_event() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model(
        "fast", calls(find_order={"order_id": "o-1"}), calls(refund={"order_id": "o-1", "cents": 5}), "Done."
    )
    run = world.start(shop.support("go"))
    world.settle()
    asked = log_of(world, shop.app, run.id).seq
    run.answer("turn/~1/tools/0/approve", by="fin")
    run.result()

    then = view(world, shop.app, run.id, seq=asked)
    assert [call.status for turn in then.turns for call in turn.calls] == ["done", "asked"]
    assert (then.is_over, then.seq) == (False, asked)
    assert view(world, shop.app, run.id).is_over


def test_the_newest_turns_cost_the_same_however_long_the_conversation_is() -> None:
    def work(turns: int) -> int:
        shop = Shop(turns=turns + 1)
        world = World(shop.app)
        world.fake_model("fast", *[calls(find_order={"order_id": str(n)}) for n in range(turns)], "Done.")
        run = world.start(shop.support("go"))
        run.result()
        log = log_of(world, shop.app, run.id)
        return lines_of(lambda: TurnPlaces(log, AskedTurns(seq=log.seq, limit=5)))

    assert work(60) <= work(12) + 5


def test_a_run_that_is_no_agent_has_none() -> None:
    shop = Shop()

    @shop.app.workflow
    async def plain() -> int:
        return 1

    world = World(shop.app)
    run = world.start(plain())
    run.result()
    with pytest.raises(weft.NotFound):
        view(world, shop.app, run.id)


def test_a_workflow_names_the_agents_that_it_asked() -> None:
    shop = Shop()

    @shop.app.workflow
    async def other() -> int:
        return 1

    @shop.app.workflow
    async def desk() -> int:
        await shop.support("Hi")
        await shop.support("Hi again")
        return await other()

    world = World(shop.app)
    world.fake_model("fast", "Hello.", "Hello again.")
    run = world.start(desk(), id="desk-1")
    run.result()

    with pytest.raises(weft.NotFound, match="the agents that it asked have conversations") as refused:
        view(world, shop.app, run.id)
    asked = [line.split()[2] for line in refused.value.hint.splitlines()]
    assert len(asked) == 2
    assert [view(world, shop.app, child).prompt for child in asked] == ["Hi again", "Hi"]


def shop_at(url: str, store: str) -> tuple[weft.App, weft.Agent[str]]:
    app = weft.App(store)
    app.model("fast", url=url)

    @app.step(effect="pure")
    async def find_order(order_id: str) -> str:
        return f"{order_id} was delivered"

    return app, app.agent("support", model="fast", tools=[find_order])


async def answered(store: str) -> None:
    async with scripted(tool_calls(("c1", "find_order", '{"order_id":"o-1"}')), text("It is there.")) as provider:
        app, support = shop_at(provider.url, store)
        async with app:
            reply = await (await app.start(support("Where is o-1?"), id="c-1")).result()
            assert reply.output == "It is there."
            assert [call.name for call in reply.tool_calls] == ["find_order"]


@covers("getConversation")
def test_the_api_and_the_command_line_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"sqlite:///{tmp_path}/weft.db"
    asyncio.run(answered(store))

    app, _ = shop_at("http://127.0.0.1:9/v1", store)
    with serving(app) as server:
        shown = server.get(f"{API}/runs/c-1/conversation?limit=10").json
        assert [turn["text"] for turn in shown["turns"]] == ["", "It is there."]
        assert shown["turns"][0]["calls"][0]["result"] == '"o-1 was delivered"'
        early = server.get(f"{API}/runs/c-1/conversation?at=5").json
        assert (len(early["turns"]), early["is_over"], early["seq"]) == (1, False, 5)
        assert server.get(f"{API}/runs/c-1/conversation?at=9999").status == 404
        assert server.get(f"{API}/runs/nobody/conversation").status == 404

    capsys.readouterr()
    assert main(["show", "c-1", "--conversation", "--url", store]) == 0
    printed = capsys.readouterr().out
    assert "user: Where is o-1?" in printed
    assert "find_order(" in printed
    assert "agent: It is there." in printed
    assert main(["show", "c-1", "--conversation", "--url", store, "--json"]) == 0
    document = msgspec.json.decode(capsys.readouterr().out)
    assert document["turns"][0]["calls"][0]["status"] == "done"
