"""Plans over HTTP: what each step is to a plan, what is missing, the picture, and a plan frozen into a graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from tests.server.kit import API, Server, covers, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    app = weft.App("memory://")

    @app.step(gives="email")
    async def load_customer(order_id: str) -> str:
        return f"{order_id}@example.com"

    @app.step(gives="total")
    async def price(order_id: str, country: str) -> int:
        return len(order_id)

    @app.step(gives="invoice")
    async def render(total: int) -> str:
        return f"for {total}"

    @app.step(gives="sent")
    async def send(email: str, invoice: str) -> str:
        return f"{invoice} to {email}"

    @app.step(gives="weather")
    async def forecast(city: str) -> str:
        return city

    @app.step(gives="percent", when="total > 100")
    async def discount(total: int) -> int:
        return total // 100

    @app.step(gives="announced")
    async def announce(percent: int) -> str:
        return f"{percent} %"

    @app.workflow
    async def billing(ctx: weft.Context) -> str:
        return "billed"

    app.goal("sending", send)

    with serving(app) as running:
        yield running


@covers("plan")
def test_every_step_of_the_catalogue_says_what_it_is_to_the_plan(server: Server) -> None:
    asked = {"goals": ["send"], "given": ["order_id"], "values": {"total": 7}}

    plan = server.post(f"{API}/plan", asked).json

    roles = {step: (one["role"], one["by"]) for step, one in plan["roles"].items()}
    assert roles == {
        "send": ("goal", []),
        "load_customer": ("plan", []),
        "render": ("plan", []),
        "price": ("satisfied", ["total"]),
        "forecast": ("idle", []),
        "discount": ("idle", []),
        "announce": ("idle", []),
    }
    assert (plan["missing"], plan["findings"], plan["picture"]) == ({}, [], None)


def test_a_step_that_runs_only_if_its_condition_holds_is_conditional(server: Server) -> None:
    plan = server.post(f"{API}/plan", {"goals": ["announce"], "given": ["total"]}).json

    assert {step: plan["roles"][step]["role"] for step in ("announce", "discount")} == {
        "announce": "goal",
        "discount": "conditional",
    }


def test_a_missing_fact_says_who_needs_it_and_who_could_give_it(server: Server) -> None:
    plan = server.post(f"{API}/plan", {"goals": ["send"], "given": ["order_id"]}).json

    assert plan["missing_facts"] == {"country": {"needed_by": ["price"], "could_give": [], "type": "string"}}


def test_a_value_of_the_wrong_type_is_a_finding_at_its_fact(server: Server) -> None:
    plan = server.post(f"{API}/plan", {"goals": ["render"], "values": {"total": "many"}}).json

    (finding,) = plan["findings"]
    assert finding["path"] == "total"
    assert "integer" in finding["message"]


@covers("drawCatalogue")
def test_the_catalogue_and_a_plan_are_drawn_with_facts_on_their_arrows(server: Server) -> None:
    everything = server.get(f"{API}/catalogue/picture").json
    plan = server.post(f"{API}/plan", {"goals": ["send"], "given": ["order_id", "country"], "picture": True}).json

    drawn = {box["id"] for box in everything["boxes"]}
    assert drawn == {"load_customer", "price", "render", "send", "forecast", "discount", "announce"}
    labels = {arrow["id"]: arrow["label"] for arrow in everything["arrows"]}
    assert labels == {
        "load_customer>send": "email",
        "render>send": "invoice",
        "price>render": "total",
        "price>discount": "total",
        "discount>announce": "percent",
    }
    assert {box["id"] for box in plan["picture"]["boxes"]} == {"load_customer", "price", "render", "send"}


def test_the_steps_of_named_goals_are_drawn_before_anything_is_planned_although_they_give_nothing() -> None:
    app = weft.App("memory://")
    app.goal("filed", "file")

    @app.step(gives="invoice")
    async def render() -> str:
        return "invoice"

    @app.step
    async def send(invoice: str) -> None:
        """Registered before its goal."""

    @app.step
    async def file(invoice: str) -> None:
        """Registered after its goal, which names it."""

    @app.step
    async def log(text: str) -> None:
        """No goal wants it."""

    app.goal("sent", send)

    with serving(app) as server:
        boxes = server.get(f"{API}/catalogue/picture").json["boxes"]

    assert {box["id"] for box in boxes} == {"render", "send", "file"}


@covers("freezePlan")
def test_a_plan_is_frozen_into_a_graph_that_can_be_started(server: Server) -> None:
    asked = {"name": "invoicing", "goals": ["send"], "given": ["order_id", "country"]}

    frozen = server.post(f"{API}/plan/freeze", asked)

    assert (frozen.status, frozen.json["workflow"], frozen.json["nodes"]) == (200, "invoicing", 4)
    shown = server.get(f"{API}/workflows/invoicing/versions/{frozen.json['version']}").json
    assert shown["style"] == "graph"
    given = {"order_id": "o-1", "country": "DE"}
    started = {"workflow": "invoicing", "version": frozen.json["version"], "id": "frozen-1", "input": given}
    assert server.post(f"{API}/runs", started).status == 201
    assert server.result("frozen-1")["status"] == "completed"


def test_a_plan_that_lacks_facts_cannot_be_frozen(server: Server) -> None:
    refused = server.post(f"{API}/plan/freeze", {"name": "incomplete", "goals": ["send"]})

    assert refused.status == 422
    assert server.get(f"{API}/workflows/incomplete").status == 404


@pytest.mark.parametrize("name", ["billing", "sending", "weft.bulk", "goal"])
def test_a_plan_is_not_frozen_under_the_name_of_a_workflow_that_is_no_graph(server: Server, name: str) -> None:
    before = server.get(f"{API}/workflows?all=true").json

    refused = server.post(f"{API}/plan/freeze", {"name": name, "goals": ["send"], "given": ["order_id", "country"]})

    assert (refused.status, refused.json["code"]) == (409, "usage.name_taken")
    assert f'"{name}"' in refused.json["detail"]
    assert server.get(f"{API}/workflows?all=true").json == before


def test_a_plan_is_not_frozen_under_a_name_that_chooses_a_version(server: Server) -> None:
    refused = server.post(
        f"{API}/plan/freeze", {"name": "bill:live", "goals": ["send"], "given": ["order_id", "country"]}
    )

    assert (refused.status, refused.json["code"]) == (422, "value.bad_name")
