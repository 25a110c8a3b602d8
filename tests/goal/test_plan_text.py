"""A plan as people read it."""

from __future__ import annotations

from tests.goal.documents import catalogue_of, steps_of
from weft.core.goal.catalogue import Catalogue
from weft.core.goal.plan_text import render
from weft.core.goal.planner import make_plan

SHOP = {
    "load_customer": {"needs": {"order_id": "string"}, "gives": {"email": "string", "country": "string"}},
    "guess_country": {"needs": {"ip": "string"}, "gives": {"country": "string"}},
    "price": {"needs": {"order_id": "string", "country": "string"}, "gives": {"total": "integer"}},
    "render_invoice": {
        "needs": {"order_id": "string", "total": "integer", "language": {"type": "string", "default": "en"}},
        "gives": {"invoice_url": "string"},
        "when": "total > 0",
    },
    "send_invoice": {"needs": {"email": "string", "invoice_url": "string"}},
}

TREE = """\
send_invoice  (goal)
├─ email (string): from
│  └─ load_customer -> country, email
│     └─ order_id (string): given
└─ invoice_url (string): from
   └─ render_invoice -> invoice_url  when total > 0
      ├─ language (string): "en"
      ├─ order_id (string): given
      └─ total (integer): from
         └─ price -> total
            ├─ country (string): from
            │  └─ load_customer  (see above)
            └─ order_id (string): given

left out:
  guess_country: it lacks ip"""


def test_a_plan_is_a_tree_with_reasons() -> None:
    plan = make_plan(catalogue_of(steps_of(SHOP)), ["send_invoice"], ["order_id"])
    assert render(plan) == TREE


def test_what_is_missing_stands_out() -> None:
    text = render(make_plan(catalogue_of(steps_of(SHOP)), ["send_invoice"], ["ip"]))
    assert "MISSING, price needs it" in text
    assert "missing:\n  order_id, needed by load_customer, price, render_invoice" in text


def test_competitors_gates_and_waits_are_told() -> None:
    document = {
        "a": {"gives": {"x": "any"}},
        "b": {"gives": {"x": "any"}},
        "g": {
            "needs": {
                "x": {"match": "value > 1"},
                "lost": "any",
                "y": {"default": 3, "deadline": "5s"},
                "z": {"const": [1]},
                "w": {"collect": "none"},
            },
        },
        "c": {"gives": {"y": "any"}},
    }
    text = render(make_plan(catalogue_of(steps_of(document)), ["g"], []))
    assert "x (only if value > 1): whichever is first\n" in text
    assert "y: from else 3, waits 5s\n" in text
    assert "z: always [1]" in text
    assert "w (none): nobody may give it" in text
    assert "missing, should a gate open:\n  lost, needed by g" in text
    assert "note: g waits only a while for y (from c)" in text


def test_a_goal_that_is_satisfied_or_blocked_says_so() -> None:
    catalogue = catalogue_of(steps_of({"a": {"gives": {"x": "any"}}, "b": {"needs": {"x": {"collect": "none"}}}}))
    text = render(make_plan(catalogue, ["a", "b"], ["x"]))
    assert text.splitlines() == [
        "a  (goal; nothing to do: x is given)",
        "b  (goal; blocked: it requires that x is absent, and x is given)",
    ]


def test_a_chain_of_ten_thousand_steps_can_be_printed() -> None:
    document = {f"s{n:05}": {"needs": {f"f{n}": "any"}, "gives": {f"f{n + 1}": "any"}} for n in range(10_000)}
    text = render(make_plan(Catalogue(steps_of(document)), ["s09999"], ["f0"]))
    assert all(f"s{n:05} -> f{n + 1}" in text for n in range(0, 10_000, 997))
    assert max(len(line) for line in text.splitlines()) < 200


def test_see_above_points_upwards() -> None:
    document = {
        "price": {"needs": {"order": "any"}, "gives": {"total": "any"}},
        "tax": {"needs": {"total": "any"}, "gives": {"duty": "any"}},
        "bill": {"needs": {"duty": "any", "total": "any"}},
    }
    lines = render(make_plan(catalogue_of(steps_of(document)), ["bill"], ["order"])).splitlines()

    (told,) = [n for n, line in enumerate(lines) if "price -> total" in line]
    (again,) = [n for n, line in enumerate(lines) if "price  (see above)" in line]
    assert told < again
