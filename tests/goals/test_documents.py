"""Documents of steps: what authors write is what the catalogue gets, in either spelling, or all that is wrong is told."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from weft.core.events import DEFAULT_POLICY, Policy, UndoPlan
from weft.core.findings import Finding
from weft.core.goal.checks import BadStep
from weft.core.goal.definitions import (
    AskWay,
    Cache,
    Give,
    GoalWay,
    HttpWay,
    Need,
    Script,
    ScriptWay,
    StepDef,
    StepWay,
    WorkflowWay,
)
from weft.errors import NotFound
from weft.goals import document_schema, load_steps, parse_steps
from weft.runtime.goal_language import GOAL_LANGUAGES

GOLDEN = Path(__file__).parents[1] / "golden" / "goals"


def read(text: str) -> dict[str, StepDef]:
    return {step.id: step for step in parse_steps(text, GOAL_LANGUAGES, file="steps.yaml").steps}


def one(body: dict[str, Any], **more: Any) -> StepDef:
    """A step `s` whose document says this; without a way it is a registered one."""
    way = {} if {"http", "script", "pipeline", "goal", "workflow", "ask", "flow"} & set(body) else {"step": "s"}
    (step,) = load_steps({"weft": "steps/1", "steps": {"s": {**way, **body, **more}}}, GOAL_LANGUAGES).steps
    return step


def wrong(text: str | dict[str, Any]) -> list[Finding]:
    """All that is wrong with a document."""
    with pytest.raises(BadStep) as refused:
        if isinstance(text, str):
            parse_steps(text, GOAL_LANGUAGES, file="steps.yaml")
        else:
            load_steps(text, GOAL_LANGUAGES)
    found: Any = refused.value.context["findings"]
    return list(found)


def test_the_example_of_the_surface_is_read_word_for_word() -> None:
    (step,) = read("""
weft: steps/1
steps:
  price:                                   # exactly one of: step (registered) · http · script · goal · workflow · ask
    http: {url: "https://shop.example/price/{order_id}", method: POST, answer: now, health: "https://shop.example/ok"}
    needs: {order_id: string, country: string, coupon: {type: string, default: "", deadline: 5s}, users: {type: "string[]", each: true}}
    gives: {total: number}
    when: country != ""
    retry: {attempts: 4, backoff: exponential, delay: 1s, max_delay: 1m}
    width: 8
""").values()

    assert step == StepDef(
        id="price",
        way=HttpWay(url="https://shop.example/price/{order_id}", health="https://shop.example/ok"),
        needs={
            "order_id": Need(type="string"),
            "country": Need(type="string"),
            "coupon": Need(role="optional", type="string", default="", deadline=5_000),
            "users": Need(type="string[]", each=True),
        },
        gives={"total": Give(type="number")},
        when=Script('country != ""'),
        policy=Policy(attempts_max=4, delay_ms=1_000, delay_ms_max=60_000),
        width=8,
    )


SEED_EXAMPLE = """
{"id": "send-email", "name": "Send Email", "type": "async",
 "http": {"url": "https://api.example.com/send-email", "method": "POST"},
 "attributes": {
   "recipient": {"role": "required", "type": "string"},
   "subject": {"role": "required", "type": "string"},
   "body": {"role": "optional", "type": "string", "default": "\\"Hello!\\""},
   "message_id": {"role": "output", "type": "string"}}}
"""


def test_the_step_of_the_seeds_event_is_read_as_it_stands() -> None:
    (step,) = read(SEED_EXAMPLE).values()

    assert step == StepDef(
        id="send-email",
        title="Send Email",
        way=HttpWay(url="https://api.example.com/send-email", answer="later"),
        needs={
            "recipient": Need(type="string"),
            "subject": Need(type="string"),
            "body": Need(role="optional", type="string", default="Hello!"),
        },
        gives={"message_id": Give(type="string")},
    )


def test_both_spellings_of_a_step_are_the_same_definition() -> None:
    ours = one({
        "http": {"url": "https://a.example/{u}", "health": "https://a.example/ok"},
        "title": "Notify",
        "needs": {"users": {"type": "array", "each": True, "name": "u"}, "n": {"type": "number", "default": 3}},
        "gives": {"message_id": {"type": "string", "name": "id"}},
        "when": {"lua": "return n > 1"},
        "retry": {"attempts": 6, "backoff": "linear", "delay": "2s", "max_delay": "30s"},
        "timeout": "5s",
        "width": 5,
        "cache": True,
        "labels": {"team": "mail"},
    })  # fmt: skip
    seeds = one({
        "type": "sync",
        "name": "Notify",
        "http": {"endpoint": "https://a.example/{u}", "timeout": 5000, "health_check": "https://a.example/ok"},
        "attributes": {
            "users": {"role": "required", "type": "array", "required": {"for_each": True, "mapping": {"name": "u"}}},
            "n": {"role": "optional", "type": "number", "default": "3"},
            "message_id": {"role": "output", "type": "string", "mapping": {"name": "id"}},
        },
        "predicate": {"language": "lua", "script": "return n > 1"},
        "work_config": {
            "max_retries": 5, "backoff_ms": 2000, "max_backoff_ms": 30000, "backoff_type": "linear", "parallelism": 5,
        },
        "memoizable": True,
        "labels": {"team": "mail"},
    })  # fmt: skip

    assert seeds == ours


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ({"step": "charge"}, StepWay("charge")),
        ({"http": "https://a.example/x"}, HttpWay(url="https://a.example/x")),
        ({"script": {"lua": "return 1"}}, ScriptWay(Script("return 1", "lua"))),
        ({"script": {"language": "ale", "script": "(+ 1 2)"}}, ScriptWay(Script("(+ 1 2)", "ale"))),
        ({"goal": "pay"}, GoalWay(["pay"])),
        ({"goal": ["pay", "ship"]}, GoalWay(["pay", "ship"])),
        ({"type": "flow", "flow": {"goals": ["pay"]}}, GoalWay(["pay"])),
        ({"workflow": "orders"}, WorkflowWay("orders")),
        ({"workflow": {"name": "orders", "version": "2"}}, WorkflowWay("orders", "2")),
        ({"ask": "Ship it?"}, AskWay(title="Ship it?")),
        (
            {"ask": {"title": "Ship?", "of": ["boss", "cfo"], "quorum": 2, "on_timeout": "reject"}},
            AskWay(title="Ship?", of=["boss", "cfo"], quorum=2, on_timeout="reject"),
        ),
    ],
)
def test_every_way_to_perform_a_step_can_be_written(said: dict[str, Any], way: Any) -> None:
    (step,) = load_steps({"steps": {"s": said}}, GOAL_LANGUAGES).steps

    assert step.way == way


@pytest.mark.parametrize(
    ("said", "need"),
    [
        ("string", Need(type="string")),
        (None, Need()),
        ({"type": "integer", "default": 0}, Need(role="optional", type="integer", default=0)),
        ({"default": None}, Need(role="optional", default=None)),
        ({"optional": True, "deadline": "wait"}, Need(role="optional", deadline="wait")),
        ({"const": "EUR"}, Need(role="const", value="EUR")),
        ({"type": "string", "collect": "all", "match": "value != ''"}, Need(type="string", collect="all", match=Script("value != ''"))),
        ({"match": {"ale": "(> value 1)"}}, Need(match=Script("(> value 1)", "ale"))),
        ({"type": {"type": "string", "enum": ["a"]}}, Need(type={"type": "string", "enum": ["a"]})),
        ({"type": "object", "properties": {"id": {"type": "string"}}}, Need(type={"type": "object", "properties": {"id": {"type": "string"}}})),
    ],
)  # fmt: skip
def test_every_kind_of_need_can_be_written(said: Any, need: Need) -> None:
    assert one({"needs": {"x": said}}).needs == {"x": need}


def test_needs_and_gives_may_be_plain_lists() -> None:
    step = one({"needs": ["a", "b"], "gives": ["c"]})

    assert (step.needs, step.gives) == ({"a": Need(), "b": Need()}, {"c": Give()})


def test_a_seeds_const_and_deadline_are_read_in_their_own_units() -> None:
    attributes = {
        "a": {"role": "const", "const": {"value": '"EUR"'}},
        "b": {"role": "optional", "optional": {"default": "[1, 2]", "deadline": 250, "collect": "last"}},
    }  # fmt: skip

    assert one({"attributes": attributes}).needs == {
        "a": Need(role="const", value="EUR"),
        "b": Need(role="optional", default=[1, 2], deadline=250, collect="last"),
    }


@pytest.mark.parametrize("maps", [
    {"input_map": {"order": "order_id"}, "output_map": {"receipt": "invoice"}},
    {"input_map": {"order_id": "order"}, "output_map": {"invoice": "receipt"}},
])  # fmt: skip
def test_a_flows_maps_are_inner_names_whichever_way_round_they_are_written(maps: dict[str, Any]) -> None:
    step = one({
        "flow": {"goals": ["pay"], **maps},
        "attributes": {
            "order": {"role": "required", "type": "string"},
            "invoice": {"role": "output", "type": "string"},
        },
    })  # fmt: skip

    assert step.needs == {"order": Need(type="string", name="order_id")}
    assert step.gives == {"invoice": Give(type="string", key="receipt")}


@pytest.mark.parametrize(
    ("config", "policy"),
    [
        ({"max_retries": 0}, DEFAULT_POLICY),
        ({"max_retries": 2}, Policy(attempts_max=3)),
        ({"max_retries": -1}, Policy(attempts_max=1_000_000_000)),
        ({"init_backoff": 90_000, "backoff_type": "fixed"}, Policy(backoff="fixed", delay_ms=90_000, delay_ms_max=90_000)),
    ],
)  # fmt: skip
def test_a_work_config_is_a_policy(config: dict[str, Any], policy: Policy) -> None:
    step = one({"http": "https://a.example/x", "work_config": config})

    assert (step.policy, step.width) == (policy, 1)


def test_policies_of_a_step_are_read() -> None:
    step = one({"http": "https://a.example/x", "retry": 2, "timeout": "3s", "queue": "slow", "cache": "1h"})

    assert step.policy == Policy(attempts_max=2, timeout_ms=3_000, queue="slow")
    assert step.cache == Cache(3_600_000)


class Registered:
    """What an app knows of its own step."""

    def step_policy(self, step: str) -> Policy | None:
        return Policy(attempts_max=9, queue="mail") if step == "charge" else None

    def step_undo(self, step: str) -> UndoPlan | None:
        return UndoPlan("refund", ["result"]) if step == "charge" else None

    def step_parameters(self, step: str) -> list[str] | None:
        return ["result"] if step == "give_back" else None


def test_a_registered_steps_own_policies_stand_where_the_document_is_silent() -> None:
    document = {"steps": {
        "quiet": {"step": "charge"},
        "loud": {"step": "charge", "retry": 2, "undo": "give_back"},
    }}  # fmt: skip
    quiet, loud = load_steps(document, GOAL_LANGUAGES, Registered()).steps

    assert (quiet.policy, quiet.undo) == (Policy(attempts_max=9, queue="mail"), UndoPlan("refund", ["result"]))
    assert loud.policy == Policy(attempts_max=2, queue="mail")
    assert loud.undo == UndoPlan("give_back", ["result"])


def test_an_undo_that_is_not_known_here_is_given_all_there_is() -> None:
    step = one({"http": "https://a.example/x", "needs": {"order_id": {"name": "id"}}, "undo": "refund"})

    assert step.undo == UndoPlan("refund", ["id", "result"])


def test_all_that_is_wrong_is_told_at_once_each_with_its_place_and_line() -> None:
    found = wrong("""\
weft: steps/2
steps:
  price:
    http: {ur: "https://shop.example/{order_id}", metod: POST}
    needs:
      order_id: strin
      coupon: {type: string, defalt: "", deadline: 5 parsecs}
      n: {type: number, each: true}
    gives: {total: numbr, order_id: string}
    when: contry != ""
    retry: {attempts: 0}
    width: 0
  two: {step: a, script: {lua: "return 1"}}
  three: {type: script, attributes: {x: {role: requred}}, script: {language: lau, script: "1"}}
  four: {script: {lua: "return ("}, needs: {x: {default: 1, match: "value > 1"}}}
  five: {}
""")
    told = {(each.line, each.path): f"{each.message} {each.suggestion}".strip() for each in found}

    assert told == {
        (1, "weft"): 'must be steps/1, not "steps/2".',
        (4, "steps.price.http.ur"): '"ur" is not a field here. Did you mean "url"?',
        (4, "steps.price.http.metod"): '"metod" is not a field here. Did you mean "method"?',
        (4, "steps.price.http"): "url is missing.",
        (6, "steps.price.needs.order_id.type"): 'there is no type "strin". Did you mean "string"?',
        (7, "steps.price.needs.coupon.defalt"): '"defalt" is not a field here. Did you mean "default"?',
        (7, "steps.price.needs.coupon.deadline"): told[7, "steps.price.needs.coupon.deadline"],
        (8, "steps.price.needs.n.each"): "`each` needs an array, but n is number.",
        (9, "steps.price.gives.total.type"): 'there is no type "numbr". Did you mean "number"?',
        (9, "steps.price.gives.order_id"): "order_id is both needed and given. Give it another name.",
        (10, "steps.price.when"): "the cel does not compile: the name contry is unknown",
        (11, "steps.price.retry.attempts"): "must be an integer of at least 1, not 0.",
        (12, "steps.price.width"): "must be an integer of at least 1, not 0.",
        (
            13,
            "steps.two",
        ): "a step is performed in one way, not by step and script. Use exactly one of step, http, script, pipeline, goal, workflow, agent, ask.",
        (14, "steps.three.script.language"): '"lau" is not one of cel, jpath, lua, ale. Did you mean "lua"?',
        (14, "steps.three.attributes.x.role"): told[14, "steps.three.attributes.x.role"],
        (
            15,
            "steps.four.needs.x.match",
        ): "x is optional: only required needs have a match. Make it required, or use `when`.",
        (15, "steps.four.script"): told[15, "steps.four.script"],
        (
            16,
            "steps.five",
        ): "five does not say how it is performed. Use exactly one of step, http, script, pipeline, goal, workflow, agent, ask.",
    }
    assert "5 parsecs" in told[7, "steps.price.needs.coupon.deadline"]
    assert 'Did you mean "required"?' in told[14, "steps.three.attributes.x.role"]
    assert "does not compile" in told[15, "steps.four.script"]


@pytest.mark.parametrize(
    ("said", "path", "message"),
    [
        ({"http": {"url": "ftp://a.example"}}, "s.http.url", "does not begin with https://"),
        ({"http": {"url": "https://a.example/{x}"}}, "s.http.url", "{x}, which is not one of its needs"),
        ({"http": {"url": "https://a.example/{x}"}, "needs": {"x": {"optional": True}}}, "s.http.url", "may be absent"),
        ({"http": {"url": "https://{h}.example/"}, "needs": ["h"]}, "s.http.url", "has an argument in its host"),
        ({"http": {"url": "https://a.example", "health": "https://a.example/{x}"}}, "s.http.health", "takes no arguments"),
        ({"http": {"url": "https://a.example", "webhook": "url"}}, "s.http.webhook", "applies only to answer: later"),
        ({"http": {"url": "https://a.example", "body": "form"}}, "s.http.body", "bare"),
        ({"script": "a + b"}, "s.script", "must be in Lua or Ale"),
        ({"goal": []}, "s.goal", "at least one goal"),
        ({"goal": "g", "cache": True}, "s.cache", "cannot be cached"),
        ({"step": "a", "needs": {"x": 3}}, "s.needs.x", "must be a mapping"),
        ({"step": "a", "needs": 3}, "s.needs", "must be a mapping of facts to types"),
        ({"step": "a", "attributes": {"x": {"type": "string"}}}, "s.attributes.x", "role is missing"),
        ({"step": "a", "attributes": {"x": {"role": "meta"}}}, "s.attributes.x", "key is missing"),
        ({"step": "a", "attributes": {"x": {"role": "inout"}}}, "s.attributes.x.role", "is not one of required"),
        ({"step": "a", "attributes": {"x": {"role": "output", "default": "1"}}}, "s.attributes.x.default", "does not apply"),
        ({"step": "a", "attributes": {"x": {"role": "optional", "default": "no json"}}}, "s.attributes.x.default", "JSON in a text"),
        ({"step": "a", "attributes": {"x": {"role": "required", "mapping": {"script": "$.a"}}}}, "s.attributes.x.mapping", "does not compile"),
        ({"step": "a", "attributes": {}, "needs": {}}, "s.needs", "are two names for the same field"),
        ({"step": "a", "when": "true", "predicate": "true"}, "s.predicate", "are two names for the same field"),
        ({"step": "a", "retry": 3, "work_config": {}}, "s.retry", "are two names for the same field"),
        ({"http": {"url": "https://a.example", "timeout": 50}, "timeout": "1s"}, "s.timeout", "next to the URL"),
        ({"type": "script", "http": "https://a.example"}, "s.type", "needs script"),
        ({"step": "a", "effect": "careful"}, "s.effect", "is not one of pure, idempotent, irreversible"),
        ({"step": "a", "labels": {"a": 1}}, "s.labels", "a mapping of names to texts"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_where_it_stands(said: dict[str, Any], path: str, message: str) -> None:
    found = wrong({"steps": {"s": said}})

    assert (f"steps.{path}", True) in [(each.path, message in each.message) for each in found], found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("steps: [", "goal.yaml"),
        ("{}", "goal.missing_field"),
        ("steps: 3", "goal.wrong_type"),
        ("[1, 2]", "goal.wrong_type"),
        ("steps: [{step: a}]", "goal.missing_field"),
        ("steps: [{id: a, step: a}, {id: a, step: a}]", "goal.two_steps"),
        ("steps: {a: {step: a}, a: {step: b}}", "goal.duplicate_key"),
        ("steps: {a b: {step: a}}", "goal.bad_id"),
        ("steps: {a: 3}", "goal.wrong_type"),
    ],
)
def test_what_is_no_document_of_steps_is_refused_with_a_code(text: str, code: str) -> None:
    assert code in {each.code for each in wrong(text)}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.yaml"):
        load_steps(tmp_path / "nothing.yaml", GOAL_LANGUAGES)


def test_steps_may_come_as_a_list() -> None:
    assert list(read("steps: [{id: a, step: x}, {id: b, step: y}]")) == ["a", "b"]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_the_steps_of_every_golden_case_are_a_document(path: Path) -> None:
    case = json.loads(path.read_text())
    if "steps" not in case or case["expect"].get("catalogue_error"):
        return
    assert len(load_steps({"weft": "steps/1", "steps": case["steps"]}, GOAL_LANGUAGES).steps) == len(case["steps"])


# --- the schema for editors --------------------------------------------------------------------------------------

EDITOR = jsonschema_rs.validator_for(document_schema())


@pytest.mark.parametrize(
    "document",
    [
        {"weft": "steps/1", "steps": {"a": {"step": "a", "needs": ["x"], "gives": {"y": "number"}}}},
        {"steps": [{"id": "a", "http": "https://a.example", "retry": 3}]},
        msgspec.json.decode(SEED_EXAMPLE),
        {"steps": {"a": {"script": {"lua": "return 1"}, "when": {"ale": "true"}, "cache": "1h", "width": 3}}},
        {"steps": {"a": {"type": "flow", "flow": {"goals": ["b"]}, "work_config": {"max_retries": -1}}}},
    ],
)
def test_an_editor_accepts_what_the_loader_accepts(document: dict[str, Any]) -> None:
    load_steps(document, GOAL_LANGUAGES)

    assert EDITOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        {"weft": "steps/2", "steps": {}},
        {"steps": {"a": {"stp": "a"}}},
        {"steps": {"a": {"step": "a", "width": 0}}},
        {"steps": {"a": {"step": "a", "attributes": {"x": {"role": "input"}}}}},
        {"steps": {"a": {"http": {"url": "https://a.example", "method": "FETCH"}}}},
        {"steps": {"a": {"script": {"perl": "1"}}}},
        {"step": {}},
    ],
)
def test_an_editor_sees_mistakes_while_they_are_typed(document: dict[str, Any]) -> None:
    assert not EDITOR.is_valid(document)
    wrong(document)
