"""The examples of the seed of goals, one after the other, run on the engine with the events that it names."""

import asyncio
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import pytest

import weft
from tests.goal.seed_kit import FETCH, MAIL, achieve, app_with, gives, log_of, needs, register, step, told
from weft.core import events as e
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.plan import FactUse
from weft.core.goal.planner import make_plan
from weft.errors import BadPlan, Refused, RunFailed
from weft.goals import load_steps
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.webhooks import ReceivedWebhook, deliver_webhook
from weft.steps.http.failures import AnsweredLater
from weft.steps.http.webhooks import Receipt, Webhooks
from weft.testing import World
from weft.testing.world import SimRun
from weft.tokens import sign_body

# --- planning from goals -----------------------------------------------------------------------------------------

A = step("A", gives("customer_id"))
B = step("B", {**needs("customer_id"), **gives("order_list")})
C = step("C", {**needs("order_list"), **gives("total_value")})
D = step("D", {**needs("total_value"), **gives("recommendation")})


def planned(steps: Sequence[dict[str, Any]], given: Sequence[str]) -> Any:
    return make_plan(Catalogue(load_steps({"steps": list(steps)}, GOAL_LANGUAGES).steps), ["D"], given)


def test_planning_from_nothing_takes_all_four_steps() -> None:
    plan = planned([A, B, C, D], [])

    assert (plan.goals, list(plan.steps), plan.required) == (["D"], ["A", "B", "C", "D"], [])
    assert plan.facts == {
        "customer_id": FactUse(["A"], ["B"]),
        "order_list": FactUse(["B"], ["C"]),
        "total_value": FactUse(["C"], ["D"]),
        "recommendation": FactUse(["D"], []),
    }


def test_planning_with_the_customer_given_leaves_the_first_step_out() -> None:
    plan = planned([A, B, C, D], ["customer_id"])

    assert (list(plan.steps), plan.required) == (["B", "C", "D"], [])
    assert plan.excluded["A"].why == "satisfied"


def test_planning_without_a_provider_names_what_must_be_given() -> None:
    plan = planned([B, C, D], [])

    assert (list(plan.steps), plan.required) == (["B", "C", "D"], ["customer_id"])


@pytest.mark.parametrize("given", [{}, {"customer_id": "123"}])
def test_the_plan_is_what_runs(given: dict[str, Any]) -> None:
    app = app_with(A, B, C, D)
    world = World(app)
    for name, output in (("A", "customer_id"), ("B", "order_list"), ("C", "total_value"), ("D", "recommendation")):
        world.fake(name, {output: name})
    run = achieve(app, ["D"], given, world)

    assert run.result()["recommendation"] == "D"
    assert len(world.calls("A")) == (0 if given else 1)
    assert [len(world.calls(name)) for name in "BCD"] == [1, 1, 1]


def test_a_flow_without_what_it_requires_does_not_start() -> None:
    app = app_with(B, C, D)
    with pytest.raises(BadPlan, match="customer_id"):
        achieve(app, ["D"], {})


# --- events of a flow --------------------------------------------------------------------------------------------


def test_a_flow_of_two_steps_has_the_seeds_events_in_order() -> None:
    app = app_with(FETCH, MAIL)
    world = World(app)
    world.fake("fetch-user", {"email": "user@example.com", "name": "Alice"})
    world.fake("send-email", {"message_id": "m-1"})
    run = achieve(app, ["send-email"], {"user_id": "12345"}, world)

    assert run.result().result == {"message_id": "m-1"}
    assert told(run) == [
        "flow_started",
        "step_started", "work_started", "work_succeeded", "attribute_set", "attribute_set", "step_completed",
        "step_started", "work_started", "work_succeeded", "attribute_set", "step_completed",
        "flow_completed",
    ]  # fmt: skip
    log = log_of(run)
    started = next(event for event in log if isinstance(event, e.StepStarted))
    assert (started.step, started.facts) == ("fetch-user", {"user_id": e.FactRef("user_id")})
    assert [call.args for call in world.calls("fetch-user")] == [{"user_id": "12345"}]
    facts = [
        (event.name, msgspec.json.decode(event.value), event.provider)
        for event in log
        if isinstance(event, e.AttributeSet)
    ]
    assert facts == [
        ("email", "user@example.com", "fetch-user"),
        ("name", "Alice", "fetch-user"),
        ("message_id", "m-1", "send-email"),
    ]


def test_a_step_whose_predicate_is_false_is_skipped_and_its_goal_is_answered_so() -> None:
    sms = step("send-sms", {**needs("phone")}, predicate={"language": "lua", "script": "return phone ~= ''"})
    app = app_with(sms)
    run = achieve(app, ["send-sms"], {"phone": ""})

    assert run.result().skipped == ["send-sms"]
    assert told(run) == ["flow_started", "step_skipped", "flow_completed"]
    (skipped,) = [event for event in log_of(run) if isinstance(event, e.StepSkipped)]
    assert skipped.reason == "predicate returned false"


def test_optional_inputs_are_used_given_defaulted_or_left_out() -> None:
    optional = {"body": {"role": "optional", "type": "string", "default": '"Hello!"'}, "cc": {"role": "optional"}}
    app = weft.App("memory://")
    seen: list[dict[str, Any]] = []

    @app.step
    async def send(recipient: str, body: str, cc: str = "nobody") -> None:
        seen.append({"body": body, "cc": cc})

    app.steps(step("send", {**needs("recipient"), **optional}))
    world = World(app)
    achieve(app, ["send"], {"recipient": "bob"}, world).result()
    achieve(app, ["send"], {"recipient": "bob", "body": "Hi", "cc": "eve"}, world).result()

    assert seen == [{"body": "Hello!", "cc": "nobody"}, {"body": "Hi", "cc": "eve"}]


def test_of_two_providers_the_first_counts_and_the_other_is_not_needed() -> None:
    slow = step("slow", gives("email"))
    fast = step("fast", gives("email"))
    app = app_with(slow, fast, MAIL)
    world = World(app)
    world.fake("fast", {"email": "fast@example.com"})
    world.fake("slow", _after("1h", {"email": "slow@example.com"}))
    world.fake("send-email", {"message_id": "m-1"})
    run = achieve(app, ["send-email"], {}, world)

    assert run.result()["email"] == "fast@example.com"
    (skipped,) = [event for event in log_of(run) if isinstance(event, e.StepSkipped)]
    assert (skipped.step, skipped.reason) == ("slow", "outputs not needed")


def _after(wait: str, answer: Any) -> Any:
    async def late(**_: Any) -> Any:
        await asyncio.sleep(weft_seconds(wait))
        return answer

    return late


def weft_seconds(text: str) -> float:
    from weft.core.durations import duration_ms

    return duration_ms(text) / 1000


# --- for_each ----------------------------------------------------------------------------------------------------


def test_for_each_over_users_makes_a_work_item_per_user_and_outputs_with_their_user() -> None:
    app = weft.App("memory://")
    handed: list[dict[str, str]] = []

    @app.step
    async def notify(users: str, action: str) -> dict[str, str]:
        handed.append({"users": users, "action": action})
        return {"message_id": f"msg-{users}"}

    users = {"users": {"role": "required", "type": "array", "for_each": True}}
    app.steps(step("notify", {**users, **needs("action"), **gives("message_id")}, work_config={"parallelism": 3}))
    run = achieve(app, ["notify"], {"users": ["alice", "bob", "charlie"], "action": "notify"})

    assert run.result()["message_id"] == [
        {"users": "alice", "message_id": "msg-alice"},
        {"users": "bob", "message_id": "msg-bob"},
        {"users": "charlie", "message_id": "msg-charlie"},
    ]
    by_user = sorted(handed, key=itemgetter("users"))  # the items are performed in no fixed order
    assert by_user == [{"users": user, "action": "notify"} for user in ("alice", "bob", "charlie")]
    assert told(run).count("work_started") == 3
    assert told(run).count("step_started") == 1


def test_for_each_over_users_and_actions_makes_every_pair() -> None:
    app = weft.App("memory://")

    @app.step
    async def act(users: str, actions: str) -> dict[str, str]:
        return {"result": "notification sent" if actions == "notify" else "logged"}

    both = {name: {"role": "required", "type": "array", "for_each": True} for name in ("users", "actions")}
    app.steps(step("act", {**both, **gives("result")}))
    run = achieve(app, ["act"], {"users": ["alice", "bob"], "actions": ["notify", "log"]})

    found = run.result()["result"]
    assert len(found) == 4
    assert {"users": "bob", "actions": "notify", "result": "notification sent"} in found
    assert {"users": "alice", "actions": "log", "result": "logged"} in found
    assert all(set(entry) == {"users", "actions", "result"} for entry in found)


def test_parallelism_bounds_how_many_items_run_at_once() -> None:
    app = weft.App("memory://")
    running = most = 0

    @app.step
    async def work(ns: int) -> dict[str, int]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1
        return {"m": ns}

    each = {"ns": {"role": "required", "type": "array", "for_each": True}, **gives("m", type="number")}
    app.steps(step("work", each, work_config={"parallelism": 5}))
    achieve(app, ["work"], {"ns": list(range(12))}).result()

    assert most == 5


def test_a_predicate_is_asked_again_for_every_item() -> None:
    app = weft.App("memory://")

    @app.step
    async def notify(users: str) -> dict[str, str]:
        return {"id": users}

    users = {"users": {"role": "required", "type": "array", "for_each": True}, **gives("id")}
    app.steps(step("notify", users, predicate={"language": "ale", "script": '(!eq users "bob")'}))
    run = achieve(app, ["notify"], {"users": ["alice", "bob", "eve"]})

    assert [entry["users"] for entry in run.result()["id"]] == ["alice", "eve"]
    assert told(run).count("work_skipped") == 1


def test_a_single_value_in_a_for_each_is_an_ordinary_input() -> None:
    app = weft.App("memory://")

    @app.step
    async def notify(users: str) -> dict[str, str]:
        return {"id": users}

    app.steps(step("notify", {"users": {"role": "required", "for_each": True}, **gives("id")}))

    assert achieve(app, ["notify"], {"users": "alice"}).result()["id"] == "alice"


# --- retries and failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [("fixed", [10, 10, 10]), ("linear", [10, 20, 30]), ("exponential", [10, 20, 40])],
)
def test_retries_come_back_as_their_backoff_says(backoff: str, waits: list[int]) -> None:
    config = {"max_retries": 3, "backoff_ms": 10_000, "max_backoff_ms": 600_000, "backoff_type": backoff}
    app = weft.App("memory://")

    @app.step
    async def fetch(user_id: str) -> dict[str, str]:
        raise AssertionError

    app.steps(step("fetch", {**needs("user_id"), **gives("email")}, work_config=config))
    world = World(app)
    world.fake(fetch, *[OSError("temporary network error")] * 3, {"email": "a@b"})
    run = achieve(app, ["fetch"], {"user_id": "1"}, world)

    assert run.result()["email"] == "a@b"
    failures = [event for event in run.events if event.kind == "task_failed"]
    delays = [(event.data["retry_at"] / 1000 - event.at.timestamp()) for event in failures]
    assert [0.9 * wait <= delay <= wait for delay, wait in zip(delays, waits, strict=True)] == [True] * 3
    assert told(run)[2:8] == ["work_started", *(["work_not_completed", "retry_scheduled", "work_started"] * 2)][:6]
    assert len({call.key for call in world.calls(fetch)}) == 1, "the token is the same in every attempt"


def test_a_step_that_fails_for_good_takes_along_what_depends_on_it() -> None:
    log = step("log", needs("message_id"))
    app = app_with(FETCH, MAIL, log)
    world = World(app)
    world.fake("fetch-user", weft.Critical("database connection timeout"))
    run = achieve(app, ["log"], {"user_id": "1"}, world)

    with pytest.raises(
        RunFailed, match="goal step 'log' cannot complete: required input no longer available: message_id"
    ):
        run.result()
    assert told(run) == [
        "flow_started", "step_started", "work_started", "work_failed", "step_failed", "step_failed", "step_failed",
        "flow_failed",
    ]  # fmt: skip
    failed = [(event.step, event.failure.message) for event in log_of(run) if isinstance(event, e.StepFailedEvent)]
    assert failed[1:] == [
        ("send-email", "required input no longer available: email"),
        ("log", "required input no longer available: message_id"),
    ]


def test_a_predicate_that_raises_fails_its_step() -> None:
    app = app_with(step("send", needs("n", type="any"), predicate={"language": "lua", "script": "return n.a.b > 1"}))
    run = achieve(app, ["send"], {"n": 3})

    with pytest.raises(RunFailed, match="predicate could not be evaluated"):
        run.result()


# --- child flows, scripts ----------------------------------------------------------------------------------------


def test_a_flow_step_runs_a_child_flow_with_mapped_inputs_and_outputs() -> None:
    child = step(
        "invoice",
        {"order": {"role": "required", "type": "string"}, "receipt": {"role": "output", "type": "string"}},
        type="flow",
        flow={"goals": ["send-email"], "input_map": {"order": "user_id"}, "output_map": {"message_id": "receipt"}},
    )
    app = app_with(FETCH, MAIL, child)
    world = World(app)
    world.fake("fetch-user", {"email": "a@b", "name": "A"})
    world.fake("send-email", {"message_id": "m-9"})
    run = achieve(app, ["invoice"], {"order": "o-1"}, world)

    assert run.result().result == {"receipt": "m-9"}
    (started,) = [event for event in log_of(run) if isinstance(event, e.ChildStarted)]
    assert started.run_id == f"{run.id}.invoice"


@pytest.mark.parametrize(
    ("language", "source"),
    [("lua", "return {sum = a + b, product = a * b}"), ("ale", "{:sum (+ a b) :product (* a b)}")],
)
def test_a_scripts_inputs_are_names_in_it_and_its_table_is_its_outputs(language: str, source: str) -> None:
    numbers = {name: {"role": "required", "type": "number"} for name in ("b", "a")}
    script = {"language": language, "script": source}
    app = app_with(step("math", {**numbers, **gives("sum", "product", type="number")}, type="script", script=script))

    assert achieve(app, ["math"], {"a": 3, "b": 4}).result().result == {"sum": 7, "product": 12}


@pytest.mark.parametrize(("language", "source"), [("lua", "return 'Hello, ' .. who"), ("ale", '(str "Hello, " who)')])
def test_a_single_value_of_a_script_is_called_result(language: str, source: str) -> None:
    script = {"language": language, "script": source}
    app = app_with(step("greet", {**needs("who"), **gives("result")}, type="script", script=script))

    assert achieve(app, ["greet"], {"who": "Bob"}).result()["result"] == "Hello, Bob"


# --- asynchronous steps ------------------------------------------------------------------------------------------

HOOKS = Webhooks("https://weft.example/webhooks", "a secret of sixteen bytes")


def asynchronous() -> tuple[weft.App, World, SimRun[weft.Facts]]:
    """A flow whose only step was accepted by its server and is not answered yet."""
    app = app_with({
        "id": "render", "type": "async", "http": {"endpoint": "https://media.example/render"},
        "attributes": {**needs("video"), **gives("url")},
    })  # fmt: skip
    world = World(app)
    world.fake("render", AnsweredLater("accepted"))
    run = achieve(app, ["render"], {"video": "v-1"}, world)
    assert [item.kind for item in run.waiting_for()] == ["answer"]
    return app, world, run


def webhook(world: World, run: SimRun[Any], body: bytes, *, uid: str = "", key: str = "", age_s: int = 0) -> str:
    """Answer the only work item of a run, or what looks like it."""
    content = world._store.content
    own = content.ids[run.id]  # type: ignore[index]
    task = next(event.seq for event in content.runs[own].events if b'"kind":"task_scheduled"' in event.body)
    token = HOOKS.token(Receipt(run.id, uid or own, task, "render", 1))
    signature = sign_body(key or HOOKS.key(token), body, now_s=world.now_ms // 1000 - age_s)
    arrived = ReceivedWebhook(token=token, body=body, signature=signature)
    return world.perform(lambda: deliver_webhook(world.app.service, HOOKS, arrived))


def test_a_webhook_completes_the_work_that_it_is_for() -> None:
    _, world, run = asynchronous()
    webhook(world, run, b'{"success": true, "outputs": {"url": "https://cdn.example/1"}}')

    assert run.result().result == {"url": "https://cdn.example/1"}
    assert told(run)[-5:] == ["work_started", "work_succeeded", "attribute_set", "step_completed", "flow_completed"]


def test_a_webhook_may_say_that_the_work_failed() -> None:
    _, world, run = asynchronous()
    webhook(world, run, b'{"success": false, "error": "no such video"}')

    with pytest.raises(RunFailed, match="no such video"):
        run.result()


def test_a_webhook_that_comes_twice_or_late_changes_nothing() -> None:
    _, world, run = asynchronous()
    webhook(world, run, b'{"url": "first"}')
    assert run.result()["url"] == "first"
    before = len(run.events)
    webhook(world, run, b'{"url": "second"}')

    assert run.result()["url"] == "first"
    assert len(run.events) == before


@pytest.mark.parametrize("forged", [{"key": "another key"}, {"uid": "another-run"}, {"age_s": 3600}])
def test_a_webhook_with_a_wrong_signature_or_for_another_run_is_refused(forged: dict[str, Any]) -> None:
    _, world, run = asynchronous()
    with pytest.raises(Refused):
        webhook(world, run, b'{"url": "forged"}', **forged)

    assert run.status == "running"


def test_asynchronous_work_that_is_never_answered_has_a_deadline() -> None:
    _, world, run = asynchronous()
    world.advance("23h")
    assert run.status == "running"
    world.fake("render", {"url": "at last"})
    world.advance("2h")

    assert run.result()["url"] == "at last"


# --- recovery ----------------------------------------------------------------------------------------------------


def test_after_a_crash_work_in_flight_is_done_again_and_overdue_retries_at_once() -> None:
    config = {"max_retries": 3, "backoff_ms": 60_000, "backoff_type": "fixed"}
    app = weft.App("memory://")

    @app.step
    async def flaky(user_id: str) -> dict[str, str]:
        return {"email": "a@b"}

    @app.step
    async def slow(user_id: str) -> dict[str, str]:
        await asyncio.sleep(600)
        return {"name": "A"}

    mail = step("send-email", {**needs("email", "name"), **gives("message_id")})
    register(app, mail)
    app.steps({"steps": [
        step("flaky", {**needs("user_id"), **gives("email")}, work_config=config),
        step("slow", {**needs("user_id"), **gives("name")}),
        mail,
    ]})  # fmt: skip
    world = World(app)
    world.fake(flaky, OSError("temporary"), {"email": "a@b"})
    world.fake("send-email", {"message_id": "m-1"})
    run = achieve(app, ["send-email"], {"user_id": "1"}, world)
    world.advance("1s")
    world._process.die()  # nobody is there while the retry becomes due
    world._loop._now = world._loop.time() + 3600
    with world._bind_app():
        world._boot()
    world.settle()
    assert len(world.calls(flaky)) == 2, "the overdue retry was made at once"
    assert len(world.calls(slow)) == 2, "what was in flight was handed out again"

    assert run.result().result == {"message_id": "m-1"}
    assert len({call.key for call in world.calls(slow)}) == 1
    assert "task_lost" in [event.kind for event in run.events]
    assert told(run).count("step_started") == 3, "no step began twice"
