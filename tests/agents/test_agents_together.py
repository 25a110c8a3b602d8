"""Agents in workflows, as tools of others, with people, over several runs, and in conversations that grow too long."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.agents.shop import Shop
from tests.agents.test_loop import FIND, told
from weft.ports.models import ModelRequest
from weft.testing import World, calls, crash_everywhere


def test_an_agent_is_awaited_in_a_workflow_as_a_child_run() -> None:
    shop = Shop()

    @shop.app.workflow
    async def ask(question: str) -> str:
        return (await shop.support(question)).output

    world = World(shop.app)
    world.fake_model("fast", "Hello.")
    run = world.start(ask("Hi"))

    assert run.result() == "Hello."
    assert [event.data["workflow"] for event in run.events if event.kind == "child_started"] == ["support"]


def test_an_agent_is_started_by_its_name() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", "Hello.")

    assert world.run(shop.app.registered.runnable_named("support"), {"prompt": "Hi"}).output == "Hello."


def test_arguments_are_checked_before_anything_is_started() -> None:
    shop = Shop()
    rate = shop.app.agent("rate", model="fast", prompt="Rate ${company}.")
    with pytest.raises(weft.BadValue, match="misses company"):
        rate()
    with pytest.raises(weft.BadValue, match="no parameter other"):
        rate(company="x", other=1)
    with pytest.raises(weft.BadValue, match="prompt of its own"):
        rate("hello", company="x")


def test_values_in_a_prompt_are_data() -> None:
    shop = Shop()
    rate = shop.app.agent("rate", model="fast", prompt="Rate ${company} by ${rules}; not $${this}.")
    world = World(shop.app)
    world.fake_model("fast", "ok")
    world.run(rate(company="${rules}", rules=["a", 1]))

    assert told(world, 0) == 'Rate ${rules} by ["a",1]; not ${this}.'


def test_a_conversation_goes_on_in_another_run() -> None:
    shop = Shop(system="Be kind.")
    world = World(shop.app)
    world.fake_model("fast", FIND, "It was delivered.", "As I said, delivered.")
    first = world.run(shop.support("Where is o-1?"))

    second = world.run(shop.support("Sure?", history=first.conversation))

    assert second.output == "As I said, delivered."
    roles = [message.role for message in world.model_calls("fast")[2].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_a_history_that_is_not_there_fails_the_run() -> None:
    shop = Shop()
    world = World(shop.app)
    world.fake_model("fast", "ok")
    with pytest.raises(weft.RunFailed):
        world.run(shop.support("Sure?", history="cas://sha256:" + "0" * 64))
    with pytest.raises(weft.RunFailed, match="does not refer to a conversation"):
        world.run(shop.support("Sure?", history="nonsense"))
    assert world.model_calls("fast") == []


def test_agents_and_workflows_are_tools_as_child_runs() -> None:
    shop = Shop()

    @shop.app.workflow
    async def count(words: list[str]) -> int:
        """Count words."""
        return len(words)

    tools = [weft.tool(shop.support, effect="pure"), weft.tool(count, effect="pure")]
    lead = shop.app.agent("lead", model="local", tools=tools)
    world = World(shop.app)
    world.fake_model("local", calls(support={"prompt": "Where?"}, count={"words": ["a", "b"]}), "Done.")
    world.fake_model("fast", "Here.")
    run = world.start(lead("go"))

    assert run.result().output == "Done."
    asked = world.model_calls("local")
    assert [tool.name for tool in asked[0].tools] == ["count", "read_result", "support"]
    assert [message.text for message in asked[1].messages[-2:]] == ['"Here."', "2"]


def test_an_agent_as_a_tool_is_irreversible_unless_the_program_says_otherwise() -> None:
    shop = Shop()
    lead = shop.app.agent("lead", model="local", tools=[shop.support])
    world = World(shop.app)
    world.fake_model("local", calls(support={"prompt": "Where?"}), "Done.")

    assert [wait.location for wait in world.start(lead("go")).waiting_for()] == ["turn/~0/tools/0/approve"]


def test_a_model_may_ask_a_person() -> None:
    shop = Shop()
    agent = shop.app.agent("asker", model="fast", tools=[weft.person(of=["role:eng"])])
    world = World(shop.app)
    world.fake_model("fast", calls(ask_person={"question": "Red or blue?", "choices": ["red", "blue"]}), "Red it is.")
    run = world.start(agent("go"))
    asked = next(event for event in run.events if event.kind == "ask_opened").data
    assert (asked["title"], asked["of"]) == ("Red or blue?", ["role:eng"])

    run.answer("turn/~0/tools/0/ask_person", form={"answer": "red"}, by="ann")

    assert run.result().output == "Red it is."
    assert told(world, 1) == '{"answer":"red","by":["ann"]}'


def long_shop(context: int = 2_000) -> tuple[weft.App, weft.Agent[str]]:
    app = weft.App()
    app.model("small", url="http://127.0.0.1:9/v1", context=context, retries=weft.Retry(1))

    @app.step(effect="pure")
    async def read(page: int) -> str:
        return f"page {page}: " + "words " * 200

    return app, app.agent("reader", model="small", system="You read.", tools=[read], turns=40)


def test_a_conversation_that_grows_too_long_loses_old_results_first() -> None:
    app, reader = long_shop(context=6_000)
    world = World(app)
    world.fake_model("small", *[calls(read={"page": n}) for n in range(18)], "Read.")

    assert world.run(reader("Read all.")).output == "Read."
    asked = world.model_calls("small")
    assert all(sum(len(m.text) for m in call.messages) < 6_000 * 3.5 for call in asked)
    pruned = [m.text for m in asked[-1].messages if '"pruned":true' in m.text]
    assert pruned
    assert all('"result_ref":"cas://sha256:' in text for text in pruned)
    assert [m.role for m in asked[-1].messages[:2]] == ["system", "user"]


def test_a_conversation_that_is_still_too_long_is_summed_up_by_the_model() -> None:
    app, reader = long_shop()
    world = World(app)
    pages = iter(range(30))

    def reply(request: ModelRequest) -> object:
        if request.messages[0].text.startswith("Sum up"):
            return "SUMMARY: pages were read."
        page = next(pages, None)
        return calls(read={"page": page}, says="thoughts " * 60) if page is not None else "Read."

    world.fake_model("small", *[reply] * 60)

    assert world.run(reader("Read all.")).output == "Read."
    asked = world.model_calls("small")
    assert any("SUMMARY" in m.text for call in asked for m in call.messages)
    for call in asked:
        waiting: list[str] = []
        for message in call.messages:
            if message.role == "tool":
                waiting.pop(0)
            else:
                assert waiting == []
                waiting = [part.id for part in message.calls]
        assert waiting == []


def test_a_request_that_the_provider_finds_too_long_is_sent_once_more_and_shorter() -> None:
    app, reader = long_shop()
    world = World(app)
    too_long = weft.ModelFailed("too long", code="model.context")
    world.fake_model("small", calls(read={"page": 1}), too_long, "Read.")

    assert world.run(reader("Read all.")).output == "Read."


def test_a_conversation_goes_on_without_a_summary_if_that_request_is_too_long_as_well() -> None:
    app, reader = long_shop()
    world = World(app)
    pages = iter(range(8))

    def reply(request: ModelRequest) -> object:
        if request.messages[0].text.startswith("Sum up"):
            raise weft.ModelFailed("too long", code="model.context")
        page = next(pages, None)
        return calls(read={"page": page}, says="thoughts " * 60) if page is not None else "Read."

    world.fake_model("small", *[reply] * 60)

    assert world.run(reader("Read all.")).output == "Read."
    assert any("What happened so far" in m.text for call in world.model_calls("small") for m in call.messages)


def test_a_request_that_stays_too_long_ends_the_run() -> None:
    app, reader = long_shop()
    world = World(app)
    too_long = weft.ModelFailed("too long", code="model.context")
    world.fake_model("small", calls(read={"page": 1}), too_long, too_long)

    with pytest.raises(weft.RunFailed) as failed:
        world.run(reader("Read all."))
    assert failed.value.failure.code == "agent.context"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turns": 0}, "turns=0"),
        ({"turns": 1_001}, "turns=1001"),
        ({"compact": 2}, "compact=2"),
        ({"tools": ["no_such"]}, "no tool"),
        ({"tools": [object()]}, "cannot be a tool"),
        ({"tools": "refund"}, r"Write tools=\['refund'\]"),
        ({"tools": 7}, "tools=7 is not a list"),
        ({"approvers": "role:finance"}, r"Write approvers=\['role:finance'\]"),
        ({"approve": 7}, 'Write approve="always"'),
        ({"system": 7}, "system=7 is not a text"),
        ({"prompt": 7}, "prompt=7 is not a text"),
        ({"compact": "0.8"}, "compact='0.8' is not a number"),
        ({"result_bytes": True}, "result_bytes=True is not a whole number"),
        ({"stream": 7}, "stream=7 is not the name of a stream"),
        ({"options": [1]}, 'Write options={"temperature": 0}'),
        ({"model": None}, 'Write model="fast"'),
        ({"budget": "1 USD"}, 'Write budget=weft.Budget\\(money="2 USD"'),
        ({"approve": "args.x >"}, "args.x"),
        ({"system": "x" * 70_000}, "65,536"),
        ({"on_exhausted": "shrug"}, "on_exhausted"),
        ({"options": {"messages": []}}, "cannot set messages"),
        ({"options": {"tools": [{"type": "web_search"}]}}, "cannot set tools"),
        ({"approve": "somtimes"}, "reads somtimes"),
        ({"approve": "arg.cents > 5"}, "reads arg"),
    ],
)
def test_an_agent_that_cannot_be_is_refused_where_it_is_declared(options: dict[str, object], message: str) -> None:
    shop = Shop()
    with pytest.raises(weft.WeftError, match=message):
        shop.app.agent("bad", **{"model": "fast", **options})  # type: ignore[arg-type]


def test_a_tool_that_cannot_be_is_refused_where_it_is_offered() -> None:
    step = Shop().find_order
    anything: Any = weft
    for offer, message in (
        (lambda: anything.tool(step, per_run="3"), "per_run='3'"),
        (lambda: anything.tool(step, bind=["order_id"]), "must be a mapping"),
        (lambda: anything.tool(step, per_run=True), "per_run=True"),
        (lambda: anything.tool(step, touches="untrusted"), r'Write touches=\["untrusted"\]'),
        (lambda: anything.tool(step, name=""), 'Write name="look_up"'),
        (lambda: anything.tool(step, name=7), "name=7 is not the name of a tool"),
        (lambda: anything.tool(step, approve=7), 'Write approve="always"'),
        (lambda: anything.tool(step, approve="nevr"), "reads nevr"),
        (lambda: anything.person(of="ann"), r'Write of=\["role:eng"\]'),
        (lambda: anything.person(of=7), "of=7 is not a list"),
        (lambda: anything.person(timeout="0s"), 'Write timeout="1d"'),
        (lambda: anything.tool(anything.mcp("s", command=["x"]), name="t"), "s, which is several tools"),
        (lambda: anything.tool("search_tools", name="t"), "search_tools, which is several tools"),
        (lambda: anything.mcp("s", url="https://mcp.example", env={"A": "b"}), "env means nothing"),
        (lambda: anything.mcp("s", command=["x"], headers={"a": "b"}), "headers means nothing"),
    ):
        with pytest.raises(weft.UsageError, match=message):
            offer()


def test_two_tools_of_one_name_are_refused() -> None:
    shop = Shop()
    with pytest.raises(weft.NameTaken):
        shop.app.agent("bad", model="fast", tools=[shop.refund, weft.tool(shop.find_order, name="refund")])
    with pytest.raises(weft.NameTaken):
        shop.app.agent("support", model="fast")


def test_a_model_that_nobody_declares_is_refused_with_the_nearest_name() -> None:
    shop = Shop()
    agent = shop.app.agent("typo", model="fasst")
    with pytest.raises(weft.UsageError, match="fast"):
        agent("hi")


def priced() -> weft.App:
    app = weft.App()
    for name in ("fast", "local"):
        app.model(name, url="http://127.0.0.1:9/v1", prices=weft.Prices("1", "1"), retries=weft.Retry(1))
    return app


def test_the_usage_of_a_reply_includes_the_runs_below() -> None:
    app = priced()

    @app.step(effect="pure")
    async def look(word: str) -> str:
        return word

    reader = app.agent("reader", model="fast", tools=[look])

    @app.workflow
    async def study(words: list[str]) -> str:
        """Study words."""
        return (await reader(" ".join(words))).output

    tools = [weft.tool(reader, effect="pure"), weft.tool(study, effect="pure")]
    lead = app.agent("lead", model="local", tools=tools)
    world = World(app)
    world.fake_model("local", calls(reader={"prompt": "go"}), calls(study={"words": ["a"]}), "Done.")
    world.fake_model("fast", calls(look={"word": "a"}), "Here.", "There.")

    usage = world.run(lead("go")).usage

    alone = World(app)
    alone.fake_model("local", "Done.")
    assert alone.run(lead("go")).usage.calls == 1
    assert (usage.calls, usage.tools) == (6, 3)
    asked = [*world.model_calls("local"), *world.model_calls("fast")]
    assert usage.input > max(sum(len(m.text) for m in call.messages) for call in asked) // 4
    assert usage.money is not None
    assert usage.money > 0


def test_the_usage_of_a_reply_includes_runs_that_failed() -> None:
    app = priced()
    reader = app.agent("reader", model="fast", output=int, repairs=1)
    lead = app.agent("lead", model="local", tools=[weft.tool(reader, effect="pure")])
    world = World(app)
    world.fake_model("local", calls(reader={"prompt": "go"}), "It failed.")
    world.fake_model("fast", "no", "no number")

    reply = world.run(lead("go"))
    assert reply.output == "It failed."
    assert reply.usage.calls == 4


@pytest.mark.proof
def test_the_usage_of_a_tree_is_read_once_whatever_crashes() -> None:
    app = priced()
    reader = app.agent("reader", model="fast")
    lead = app.agent("lead", model="local", tools=[weft.tool(reader, effect="pure")])

    def scenario(world: World) -> None:
        world.fake_model("local", calls(reader={"prompt": "go"}), "Done.")
        world.fake_model("fast", "Here.")
        reply = world.start(lead("go"), id="lead-1").result()
        assert (reply.usage.calls, reply.usage.tools) == (3, 1)

    assert crash_everywhere(app, scenario) > 3
