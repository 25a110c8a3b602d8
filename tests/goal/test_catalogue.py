"""The catalogue: what is refused at once, what agrees, what would be circular, and how it changes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tests.goal.documents import Languages, catalogue_of, step_of, steps_of
from tests.goal.worlds import ALL, random_steps
from weft.core.events import Policy, UndoPlan
from weft.core.goal import catalogue as cat
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.checks import BadStep, find_problems
from weft.core.goal.definitions import (
    AskWay,
    Cache,
    Give,
    GoalWay,
    HttpWay,
    Need,
    Script,
    StepDef,
    StepWay,
    definition_digest,
    work_digest,
)
from weft.core.goal.types import narrower, normalize, type_error, types_agree
from weft.errors import NameTaken, UnknownStep

LANG = Languages()


def step(**fields: Any) -> StepDef:
    return StepDef(**{"id": "s", "way": StepWay("s"), **fields})


# --- refused at once ----------------------------------------------------------------------------------------------

BAD: list[tuple[str, StepDef, str, str]] = [
    ("no id", step(id=""), "goal.bad_id", "id"),
    ("an id with spaces", step(id="a b"), "goal.bad_id", "id"),
    ("nothing to perform", step(way=GoalWay([])), "goal.bad_way", "goal"),
    ("an empty question", step(way=AskWay(title="")), "goal.bad_way", "ask"),
    ("const without value", step(needs={"x": Need(role="const")}), "goal.bad_need", "needs.x"),
    ("a default on required", step(needs={"x": Need(default=1)}), "goal.bad_need", "needs.x.default"),
    ("a deadline on required", step(needs={"x": Need(deadline=5)}), "goal.bad_need", "needs.x.deadline"),
    (
        "match on optional",
        step(needs={"x": Need(role="optional", match=Script("true"))}),
        "goal.bad_need",
        "needs.x.match",
    ),
    (
        "match on const",
        step(needs={"x": Need(role="const", value=1, match=Script("true"))}),
        "goal.bad_need",
        "needs.x.match",
    ),
    ("each on a number", step(needs={"x": Need(type="number", each=True)}), "goal.bad_need", "needs.x.each"),
    (
        "a default of the wrong type",
        step(needs={"x": Need(role="optional", type="number", default="a")}),
        "goal.bad_need",
        "needs.x.default",
    ),
    (
        "a const against its schema",
        step(needs={"x": Need(role="const", type={"type": "object", "required": ["a"]}, value={})}),
        "goal.bad_need",
        "needs.x.const",
    ),
    ("width below 1", step(width=0), "goal.bad_width", "width"),
    ("no attempt", step(policy=Policy(attempts_max=0)), "goal.bad_retry", "retry.attempts"),
    ("an unknown type", step(gives={"x": Give(type="text")}), "goal.bad_type", "gives.x.type"),
    ("no schema", step(gives={"x": Give(type={"type": 7})}), "goal.bad_type", "gives.x.type"),
    ("two roles", step(needs={"x": Need()}, gives={"x": Give()}), "goal.two_roles", "gives.x"),
    ("one inner name twice", step(needs={"x": Need(name="n"), "n": Need()}), "goal.same_name", "needs"),
    ("one key twice", step(gives={"x": Give(key="n"), "n": Give()}), "goal.same_name", "gives"),
    ("a predicate that does not compile", step(when=Script("x >")), "goal.bad_script", "when"),
    ("a predicate on a name it has not", step(when=Script("x > 1")), "goal.bad_script", "when"),
    (
        "a match that looks elsewhere",
        step(needs={"x": Need(match=Script("y == 1"))}),
        "goal.bad_script",
        "needs.x.match",
    ),
    (
        "cache and undo",
        step(cache=Cache(), undo=UndoPlan("u", [])),
        "goal.bad_cache",
        "cache",
    ),
]


@pytest.mark.parametrize(("what", "definition", "code", "path"), BAD, ids=[case[0] for case in BAD])
def test_a_definition_that_does_not_hold_is_refused(what: str, definition: StepDef, code: str, path: str) -> None:
    found = find_problems(definition, LANG)
    assert (code, path) in [(each.code, each.path) for each in found]
    catalogue = Catalogue()
    with pytest.raises(BadStep) as refused:
        catalogue.register(definition, LANG)
    assert refused.value.context["findings"] == found
    assert catalogue.entries == {}


def test_everything_wrong_is_told_at_once() -> None:
    broken = step(width=0, needs={"x": Need(default=1)}, when=Script("("))
    with pytest.raises(BadStep, match="3 problems"):
        Catalogue().register(broken, LANG)


def test_what_is_allowed_stays_allowed() -> None:
    for definition in (
        step(needs={"x": Need(role="optional", type="array", each=True, default=[1], deadline="wait")}),
        step(needs={"x": Need(type="any", each=True)}),
        step(needs={"x": Need(type={"anyOf": [{"type": "array"}, {"type": "null"}]}, each=True)}),
        step(needs={"x": Need(type="number", collect="some", each=True)}),
        step(needs={"x": Need(role="const", value=None)}),
        step(gives={"a": Give(mapping=Script("value.n")), "b": Give(mapping=Script("value.n"))}),
        step(way=HttpWay(url="http://x.example"), needs={"x": Need(role="optional", default=None, type="null")}),
    ):
        assert find_problems(definition, LANG) == []


# --- types -------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("one", "other", "agrees"),
    [
        ("string", "string", True),
        ("string", "number", False),
        ("string", "any", True),
        ("string", None, True),
        ("number", "integer", True),
        ("array", "string[]", True),
        ("string[]", "number[]", False),
        ("number[]", "integer[]", True),
        ("object", SCHEMA, True),
        ("array", SCHEMA, False),
        (SCHEMA, {**SCHEMA, "required": ["a"]}, False),
        ({"type": "string"}, "string", True),
        ({"type": "array", "items": {"type": "string"}}, "string[]", True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string", True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "number", False),
    ],
)
def test_two_declarations_of_a_fact_agree_or_not(one: Any, other: Any, agrees: bool) -> None:
    assert types_agree(one, other) is types_agree(other, one) is agrees


@pytest.mark.parametrize(
    ("declared", "value", "fits"),
    [
        ("number", 1, True), ("number", 1.5, True), ("number", True, False), ("integer", 2.0, True),
        ("integer", 2.5, False), ("string[]", ["a"], True), ("string[]", ["a", 1], False),
        ("string[][]", [["a"]], True),
        ("null", None, True), ("object", {}, True), ("array", {}, False), ("any", None, True), (None, 1, True),
        ("boolean", True, True), ("boolean", 1, False), (SCHEMA, {"a": "x"}, True), (SCHEMA, {"a": 1}, False),
    ],
)  # fmt: skip
def test_a_value_fits_its_type_or_not(declared: Any, value: Any, fits: bool) -> None:
    assert (type_error(declared, value, msgspec.json.encode(value), LANG.fits) is None) is fits


def test_a_schema_that_says_no_more_than_a_word_is_that_word() -> None:
    assert normalize({"type": "integer", "title": "Cents"}) == "integer"
    assert normalize({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}) == "string[][]"
    assert normalize({}) == normalize(None) == "any"
    assert narrower("number", "integer") == narrower("integer", "number") == "integer"
    assert narrower(SCHEMA, "object") == narrower("object", SCHEMA) == SCHEMA


def test_a_fact_has_one_type_in_the_whole_catalogue() -> None:
    catalogue = catalogue_of(steps_of({"a": {"gives": {"x": "string"}}}))
    with pytest.raises(BadStep, match=r"x is number here and string in step a") as refused:
        catalogue.register(step_of("b", {"needs": {"x": "number"}}), LANG)
    assert refused.value.code == "goal.type_conflict"
    catalogue.register(step_of("c", {"needs": {"x": {"const": 5, "type": "number"}}}), LANG)
    catalogue.register(step_of("d", {"needs": {"x": {"type": "string", "collect": "all"}}}), LANG)


def test_a_step_with_items_gives_an_array() -> None:
    each = step_of("a", {"needs": {"users": {"type": "string[]", "each": True}}, "gives": {"id": "string"}})
    maybe = step_of("a", {"needs": {"users": {"each": True}}, "gives": {"id": "string"}})
    reads_one, reads_many = step_of("b", {"needs": {"id": "string"}}), step_of("b", {"needs": {"id": "array"}})
    catalogue_of([each, reads_many])
    catalogue_of([maybe, reads_one])
    with pytest.raises(BadStep, match="id is string here and array in step a"):
        catalogue_of([each, reads_one])


# --- cycles ------------------------------------------------------------------------------------------------------


def test_a_circle_is_refused_with_its_path() -> None:
    catalogue = catalogue_of(
        steps_of(
            {
                "a": {"needs": {"z": "any"}, "gives": {"x": "any"}},
                "b": {"needs": {"x": {"optional": True}}, "gives": {"y": "any"}},
            }
        )
    )
    with pytest.raises(BadStep, match="c -> b -> a -> c") as refused:
        catalogue.register(step_of("c", {"needs": {"y": "any"}, "gives": {"z": "any"}}), LANG)
    assert refused.value.code == "goal.cycle"
    assert refused.value.context["path"] == ["c", "b", "a", "c"]


def test_a_circle_is_judged_without_the_old_version_of_the_step() -> None:
    catalogue = catalogue_of(
        steps_of({"a": {"gives": {"x": "any"}}, "b": {"needs": {"x": "any"}, "gives": {"y": "any"}}})
    )
    turned = step_of("a", {"needs": {"y": "any"}, "gives": {"q": "any"}})
    catalogue.check(turned, LANG)
    with pytest.raises(BadStep, match="a -> b -> a"):
        catalogue.update(step_of("a", {"needs": {"y": "any"}, "gives": {"x": "any"}}), LANG)


def test_a_goal_step_may_not_reach_itself_through_its_child() -> None:
    with pytest.raises(BadStep, match="f -> f"):
        Catalogue().register(step(id="f", way=GoalWay(["f"])), LANG)


def test_random_worlds_without_circles_are_taken_in_any_order() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        steps = random_steps(rng, ALL)
        first = catalogue_of(steps)
        rng.shuffle(steps)
        second = catalogue_of(steps)
        assert (first.providers, first.consumers) == (second.providers, second.consumers)


def test_a_circle_is_found_from_its_steps_and_from_those_that_depend_on_it() -> None:
    circle = {"a": {"needs": {"y": "any"}, "gives": {"x": "any"}}, "b": {"needs": {"x": "any"}, "gives": {"y": "any"}}}
    others = {"reader": {"needs": {"y": "any"}, "gives": {"z": "any"}}, "other": {"gives": {"q": "any"}}}
    catalogue = Catalogue(steps_of({**circle, **others}))
    assert [catalogue.has_cycle([step]) for step in ("a", "b", "reader", "other")] == [True, True, True, False]
    assert catalogue.has_cycle()


def test_a_copy_changes_by_itself() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        steps = random_steps(rng, ALL)
        middle = len(steps) // 2
        original, before = Catalogue(steps[:middle]), Catalogue(steps[:middle])
        copied = original.copy()
        for one in steps[middle:]:
            copied.evolve(cat.StepRegistered(step=one))
        for one in steps[:middle]:
            copied.evolve(cat.StepUnregistered(step_id=one.id))
        for catalogue, same in ((original, before), (copied, Catalogue(steps[middle:]))):
            assert catalogue.entries.keys() == same.entries.keys()
            assert (catalogue.providers, catalogue.consumers) == (same.providers, same.consumers)
            assert (catalogue.callers, catalogue.health) == (same.callers, same.health)
            assert {fact: kinds for fact, kinds in catalogue.types.items() if kinds} == same.types


# --- changes -----------------------------------------------------------------------------------------------------


def take(catalogue: Catalogue, events: Any) -> int:
    for event in events:
        catalogue.evolve(cat.decode(cat.encode(event)))
    return len(events)


def test_registering_the_same_again_changes_nothing_and_another_is_refused() -> None:
    catalogue = Catalogue()
    first = step_of("a", {"gives": {"x": "any"}})
    assert take(catalogue, catalogue.register(first, LANG)) == 1
    assert take(catalogue, catalogue.register(step_of("a", {"gives": {"x": "any"}}), LANG)) == 0
    with pytest.raises(NameTaken, match="another definition"):
        catalogue.register(step_of("a", {"gives": {"y": "any"}}), LANG)


def test_an_update_needs_a_step_and_leaves_nothing_of_the_old_one() -> None:
    catalogue = catalogue_of(steps_of({"a": {"needs": {"k": "any"}, "gives": {"x": "string"}}}))
    new = step_of("a", {"needs": {"m": "any"}, "gives": {"y": "number"}})
    assert take(catalogue, catalogue.update(new, LANG)) == 1
    assert take(catalogue, catalogue.update(new, LANG)) == 0
    assert (catalogue.providers, catalogue.consumers) == ({"y": ["a"]}, {"m": ["a"]})
    take(catalogue, catalogue.register(step_of("b", {"gives": {"x": "number"}}), LANG))
    with pytest.raises(UnknownStep, match='"nobody"'):
        catalogue.update(step_of("nobody", {}), LANG)


def test_an_unregistered_step_is_gone_and_may_come_back_different() -> None:
    catalogue = catalogue_of(steps_of({"a": {"gives": {"x": "string"}}}))
    take(catalogue, catalogue.unregister("a"))
    assert "a" not in catalogue
    assert catalogue.providers == {}
    take(catalogue, catalogue.register(step_of("a", {"gives": {"x": "number"}}), LANG))
    with pytest.raises(UnknownStep):
        catalogue.unregister("b")


def test_health_is_an_event_only_when_it_changes() -> None:
    catalogue = catalogue_of([step()])
    assert take(catalogue, catalogue.report_health("s", "unknown")) == 0
    assert take(catalogue, catalogue.report_health("s", "unhealthy", "connection refused")) == 1
    assert take(catalogue, catalogue.report_health("s", "unhealthy", "connection refused")) == 0
    assert catalogue.health["s"] == cat.Checkup("unhealthy", "connection refused")
    assert catalogue.report_health("nobody", "healthy") == ()


def test_a_catalogue_folded_again_from_its_events_is_the_same() -> None:
    rng = random.Random(7)
    live = Catalogue()
    log: list[cat.AnyCatalogueEvent] = []
    for number in range(200):
        definition = rng.choice(random_steps(random.Random(number), ALL))
        try:
            events = live.update(definition, LANG) if definition.id in live else live.register(definition, LANG)
            if rng.random() < 0.2:
                events = (*events, *(live.unregister(definition.id) if definition.id in live else ()))
        except BadStep:
            continue
        take(live, events)
        log += events
    again = Catalogue()
    take(again, log)
    assert again.seq == live.seq > 20
    assert {s: entry.definition for s, entry in again.entries.items()} == {
        s: x.definition for s, x in live.entries.items()
    }
    assert (again.providers, again.consumers) == (live.providers, live.consumers)


def test_digests_follow_the_content_and_nothing_else() -> None:
    one = step(needs={"x": Need(), "y": Need(type="number")}, labels={"a": "b"})
    same = step(needs={"y": Need(type="number"), "x": Need()}, labels={"a": "b"})
    assert definition_digest(one) == definition_digest(same)
    renamed = msgspec.structs.replace(one, id="t", labels={}, policy=Policy(attempts_max=1))
    assert definition_digest(renamed) != definition_digest(one)
    assert work_digest(renamed) == work_digest(one)
    assert work_digest(step(when=Script("true"))) != work_digest(step())
