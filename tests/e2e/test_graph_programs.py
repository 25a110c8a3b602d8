"""The graph programs and documents of `examples/` run as they stand; the steps that a document names are made here."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

import weft
from tests.steps.http_kit import HERE, serving
from weft.testing import World

R = TypeVar("R")
EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(name: str, folder: Path) -> str:
    """What a program prints when a user starts it."""
    command = [sys.executable, str(EXAMPLES / name)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def test_p08_runs_the_graph_of_the_file_beside_it(tmp_path: Path) -> None:
    assert printed("p08_graph_yaml.py", tmp_path) == "small\n"


@pytest.mark.proof
def test_p09_runs_the_graph_that_it_builds(tmp_path: Path) -> None:
    assert printed("p09_graph_builder.py", tmp_path) == "{}\n"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_is_wrong_with_a_document(path: Path) -> None:
    assert weft.Graph.of(path).check() == []


# --- order fulfilment with approval ------------------------------------------------------------------------------


class OutOfStock(Exception):
    """There is nothing left of an article."""


class Shop:
    """The steps of `order-fulfilment.yaml`, and a world in which it runs."""

    def __init__(self) -> None:
        app = weft.App("memory://")

        @app.step(raises=[OutOfStock])
        async def reserve_stock(order_id: str, lines: list[dict[str, Any]]) -> dict[str, str]:
            if not lines:
                raise OutOfStock(order_id)
            return {"id": f"reserved-{order_id}"}

        @app.step
        async def release_stock(id: str) -> None: ...

        @app.step
        async def charge_card(order_id: str, cents: int) -> dict[str, str]:
            return {"receipt_id": f"paid-{order_id}-{cents}"}

        @app.step
        async def refund_card(order_id: str, result: dict[str, str]) -> None: ...

        @app.step
        async def send_confirmation(order_id: str) -> None: ...

        @app.step
        async def close_order(order_id: str, tracking: str) -> None: ...

        @app.step
        async def send_apology(order_id: str) -> None: ...

        @app.workflow
        async def parcel(ctx: weft.Context, order_id: str) -> dict[str, str]:
            await ctx.sleep("2h")
            return {"tracking": f"track-{order_id}"}

        self.orders = app.graph(EXAMPLES / "order-fulfilment.yaml")
        self.world = World(app)

    def order(self, total: int, lines: int = 1) -> Any:
        given = {"order_id": "o-1", "total": total, "lines": [{"sku": f"s-{n}"} for n in range(lines)]}
        return self.world.start(self.orders, given)

    def done(self) -> dict[str, list[dict[str, Any]]]:
        """Every step that was performed, with the arguments of each call."""
        names = self.world.app.registered.step_names()
        return {name: [call.args for call in calls] for name in names if (calls := self.world.calls(name))}


CONFIRMED = {
    "reserve_stock": [{"order_id": "o-1", "lines": [{"sku": "s-0"}]}],
    "send_confirmation": [{"order_id": "o-1"}],
    "close_order": [{"order_id": "o-1", "tracking": "track-o-1"}],
}


def test_a_small_order_is_shipped_without_asking_anybody() -> None:
    shop = Shop()

    assert shop.order(4_900).result() == {"tracking": "track-o-1", "paid": True}
    assert shop.done() == {**CONFIRMED, "charge_card": [{"order_id": "o-1", "cents": 4_900}]}


def test_a_large_order_is_shipped_when_a_manager_agrees() -> None:
    shop = Shop()
    run = shop.order(150_000)
    [waiting] = run.waiting_for()
    assert waiting.what == 'an answer of role:sales-manager to "Ship order o-1 for 1500 EUR?"'
    assert list(shop.done()) == ["reserve_stock"]

    run.answer("approve", approved=True, by="anna")

    assert run.result() == {"tracking": "track-o-1", "paid": True}
    assert shop.done() == {**CONFIRMED, "charge_card": [{"order_id": "o-1", "cents": 150_000}]}


def test_a_large_order_that_is_rejected_ends_with_an_apology() -> None:
    shop = Shop()
    run = shop.order(150_000)

    run.answer("approve", approved=False, by="anna", reason="no credit")

    assert run.result() == {"tracking": None, "paid": False}
    assert list(shop.done()) == ["reserve_stock", "send_apology"]


def test_after_two_days_the_director_is_asked_too() -> None:
    shop = Shop()
    run = shop.order(150_000)
    shop.world.advance("1d23h")
    [before] = run.waiting_for()
    assert "role:sales-director" not in before.what
    shop.world.advance("2h")
    [after] = run.waiting_for()
    assert "role:sales-director" in after.what

    run.answer("approve", approved=True, by="the director")

    assert run.result() == {"tracking": "track-o-1", "paid": True}


def test_an_order_nobody_decides_on_fails_after_two_weeks_and_is_taken_back() -> None:
    shop = Shop()
    run = shop.order(150_000)

    with pytest.raises(weft.RunFailed, match="did not end before its deadline"):
        run.result()
    assert shop.done()["release_stock"] == [{"id": "reserved-o-1"}]


def test_an_article_that_is_sold_out_leads_to_an_apology() -> None:
    shop = Shop()

    assert shop.order(4_900, lines=0).result() == {"tracking": None, "paid": False}
    assert shop.done() == {
        "reserve_stock": [{"order_id": "o-1", "lines": []}],
        "send_apology": [{"order_id": "o-1"}],
    }


def test_another_error_of_the_reservation_is_tried_five_times_and_caught_by_nothing() -> None:
    shop = Shop()
    shop.world.fake("reserve_stock", ConnectionError("no answer"))

    with pytest.raises(weft.RunFailed, match="no answer"):
        shop.order(4_900).result()
    assert {name: len(calls) for name, calls in shop.done().items()} == {"reserve_stock": 5}


def test_an_order_that_cannot_be_closed_is_refunded_and_then_released() -> None:
    shop = Shop()
    shop.world.fake("close_order", weft.Critical("the books are closed"))
    run = shop.order(4_900)

    with pytest.raises(weft.RunFailed, match="the books are closed"):
        run.result()
    assert shop.done()["refund_card"] == [{"order_id": "o-1", "result": {"receipt_id": "paid-o-1-4900"}}]
    assert shop.done()["release_stock"] == [{"id": "reserved-o-1"}]
    undone = [event.data["step"] for event in run.events if event.kind == "undo_scheduled"]
    assert undone == ["refund_card", "release_stock"]


def test_a_cancelled_order_is_taken_back_with_its_parcel() -> None:
    shop = Shop()
    run = shop.order(4_900)
    shop.world.advance("1h")
    assert {waiting.kind for waiting in run.waiting_for()} == {"child"}

    run.cancel("changed their mind")

    with pytest.raises(weft.RunCancelled):
        run.result()
    assert {"refund_card", "release_stock"} <= set(shop.done())
    assert "close_order" not in shop.done()


@pytest.mark.parametrize("step", ["reserve_stock", "charge_card", "send_confirmation", "close_order"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_order_goes_on_after_a_crash(step: str, when: Any) -> None:
    shop = Shop()
    shop.world.crash(at=step, when=when)

    assert shop.order(4_900).result() == {"tracking": "track-o-1", "paid": True}
    assert shop.world.missed_crashes() == []
    keys = {name: {call.key for call in shop.world.calls(name)} for name in shop.done()}
    assert all(len(found) == 1 for found in keys.values()), "what was done twice was done under one key"


# --- lead scoring ------------------------------------------------------------------------------------------------


class Sales:
    """The steps of `lead-scoring.yaml`. Scores come one after the other, the last again and again."""

    def __init__(self, *scores: dict[str, Any]) -> None:
        app = weft.App("memory://")

        @app.step
        async def enrich_company(company: str, known: dict[str, Any] | None) -> dict[str, Any]:
            return {"name": company, "looks": (known or {}).get("looks", 0) + 1, "revenue": 50_000}

        @app.step
        async def score_lead(profile: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError("the world answers")

        @app.step
        async def send_gift(email: str) -> None: ...

        @app.step
        async def assign_rep(email: str, score: float) -> str:
            return f"{email} has a contact"

        @app.workflow
        async def nurture_campaign(ctx: weft.Context, email: str) -> None:
            await ctx.sleep("30d")

        self.leads = app.graph(EXAMPLES / "lead-scoring.yaml")
        self.world = World(app)
        self.world.fake(score_lead, *scores)
        self.run = self.world.start(self.leads, {"company": "Acme", "email": "joe@acme.example"})

    def nodes(self) -> list[str]:
        """The nodes that it went through, in order."""
        return [event.data["node"] for event in self.run.events if event.kind == "node_routed" and "node" in event.data]


def test_a_fair_score_goes_to_standard_sales() -> None:
    sales = Sales({"score": 63, "confidence": 0.9, "flags": []})

    assert sales.run.result() == {"score": 63}
    assert sales.nodes() == ["enrich", "score", "standard_sales"]
    [call] = sales.world.calls("assign_rep")
    assert call.args == {"email": "joe@acme.example", "score": 63}


def test_a_high_score_of_a_poor_company_is_no_enterprise() -> None:
    sales = Sales({"score": 95, "confidence": 0.9, "flags": []})

    assert sales.run.result() == {"score": 95}
    assert sales.nodes() == ["enrich", "score", "standard_sales"]


def test_an_unsure_score_is_looked_at_again_with_what_is_known() -> None:
    sales = Sales({"score": 63, "confidence": 0.4, "flags": []}, {"score": 52, "confidence": 0.8, "flags": []})

    assert sales.run.result() == {"score": 52}
    assert sales.nodes() == ["enrich", "score", "enrich", "score", "standard_sales"]
    assert [call.args["known"] for call in sales.world.calls("enrich_company")] == [
        None,
        {"name": "Acme", "looks": 1, "revenue": 50_000},
    ]


def test_a_competitor_is_disqualified() -> None:
    sales = Sales({"score": 10, "confidence": 1, "flags": ["new", "competitor"]})

    assert sales.run.result() == {"score": 10}
    assert sales.nodes() == ["enrich", "score", "disqualify"]


def test_the_rest_is_nurtured_by_another_workflow() -> None:
    sales = Sales({"score": 10, "confidence": 1, "flags": []})
    before = sales.world.now_ms

    assert sales.run.result() == {"score": 10}
    assert sales.nodes() == ["enrich", "score", "nurture"]
    assert sales.world.now_ms - before >= 30 * 86_400_000


def test_after_three_unsure_scores_a_person_scores_by_hand() -> None:
    sales = Sales({"score": 63, "confidence": 0.4, "flags": []})
    [waiting] = sales.run.waiting_for()
    assert waiting.what == 'an answer of team:sales to "Score Acme by hand"'
    with pytest.raises(weft.BadValue):
        sales.run.answer("manual_review", form={"score": "high"}, by="anna")

    sales.run.answer("manual_review", form={"score": 71}, by="anna")

    assert sales.run.result() == {"score": 71}
    assert sales.nodes() == [*["enrich", "score"] * 3, "manual_review"]


# --- leads -------------------------------------------------------------------------------------------------------


class Leads:
    """The steps of `leads.yaml`."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        app = weft.App("memory://")

        @app.step
        async def enrich_company(company: str) -> dict[str, Any]:
            raise AssertionError("the world answers")

        @app.step
        def probe_domain(domain: str) -> bool:
            return domain.endswith(".com")

        @app.step
        def call_sales(profile: dict[str, Any]) -> None: ...

        @app.step
        def add_to_campaign(domains: list[bool]) -> None: ...

        self.graph = app.graph(EXAMPLES / "leads.yaml")
        self.world = World(app)
        self.world.fake(enrich_company, *answers)

    def run(self, *domains: str) -> dict[str, Any]:
        return self.world.run(self.graph, {"company": "Acme", "domains": list(domains)})

    def given(self, step: str) -> list[dict[str, Any]]:
        return [call.args for call in self.world.calls(step)]


SMALL = {"confidence": 0.9, "size": 20, "tier": "small"}


@pytest.mark.parametrize("domains", [[], ["a.com"], ["a.com", "b.org", "c.com", "d.org", "e.com", "f.com"]])
def test_every_domain_of_a_small_company_is_probed_and_the_answers_keep_their_order(domains: list[str]) -> None:
    leads = Leads(SMALL)

    assert leads.run(*domains) == {"tier": "small"}
    assert sorted(call["domain"] for call in leads.given("probe_domain")) == sorted(domains)
    assert leads.given("add_to_campaign") == [{"domains": [name.endswith(".com") for name in domains]}]


def test_a_large_company_is_called() -> None:
    large = {"confidence": 0.9, "size": 5_000, "tier": "large"}
    leads = Leads(large)

    assert leads.run("a.com") == {"tier": "large"}
    assert leads.given("call_sales") == [{"profile": large}]
    assert leads.given("probe_domain") == leads.given("add_to_campaign") == []


def test_a_company_that_stays_unclear_fails_the_run_by_name() -> None:
    leads = Leads({**SMALL, "confidence": 0.5})

    with pytest.raises(weft.RunFailed, match="enrich was executed 3 times"):
        leads.run("a.com")
    assert len(leads.given("enrich_company")) == 3


# --- the document pipeline, over real HTTP -----------------------------------------------------------------------


class Library:
    """A web server with documents, and the steps of `document-pipeline.yaml`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.accepted: set[str] = set()
        self.split: list[str] = []
        app = self.app = weft.App("memory://")

        @app.step
        async def split_pages(pdf: str, name: str) -> dict[str, list[str]]:
            self.split.append(name)
            return {"pages": [page for page in pdf.split("|") if page]}

        @app.step
        async def ocr(page: str) -> dict[str, str]:
            return {"text": page.upper()}

        @app.step
        async def summarise(texts: list[list[str]]) -> str:
            return " / ".join(" ".join(pages) for pages in texts)

        self.documents = app.graph(EXAMPLES / "document-pipeline.yaml")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """`/lost…` is not there, `/never…` does not come; every other path is the text of a document."""
        name = request.path.removeprefix("/")
        self.asked.append(name)
        self.accepted.add(request.headers["accept"])
        if name.startswith("lost"):
            return web.Response(status=404)
        if name.startswith("never"):
            await asyncio.Event().wait()
        if name.startswith("pdf"):
            return web.Response(body=b"%PDF-1.7\0", content_type="application/pdf")
        return web.Response(text=name)

    def run(self, *names: str) -> dict[str, Any]:
        async def scenario() -> dict[str, Any]:
            async with serving(self.answer) as base, self.app:
                urls = [f"{base}/{name}" for name in names]
                handle = await self.app.start(self.documents, {"batch": "b-1", "urls": urls})
                return await handle.result()

        return timed(scenario)


def timed(scenario: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run it; a test that hangs fails."""

    async def bounded() -> R:
        async with asyncio.timeout(200):
            return await scenario()

    return asyncio.run(bounded())


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("WEFT_HTTP_ALLOW", HERE)
    return Library()


def test_all_pages_of_all_documents_are_read_in_order(library: Library) -> None:
    found = library.run("a|b|c", "d", "|", "e|f")

    assert found == {"summary": "A B C / D /  / E F", "failed": 0}
    assert library.accepted == {"application/pdf"}
    assert sorted(library.split) == [f"Document {n} of 4" for n in (1, 2, 3, 4)]


def test_one_document_of_ten_may_be_lost(library: Library) -> None:
    names = [f"p{n}" for n in range(9)]

    found = library.run(*names[:4], "lost", *names[4:])

    assert found == {"summary": " / ".join(name.upper() for name in names), "failed": 1}
    assert library.asked.count("lost") == 1, "what is not there is not asked for again"


def test_two_lost_documents_of_ten_are_too_many(library: Library) -> None:
    with pytest.raises(weft.RunFailed, match="documents needs 9 of 10 branches"):
        library.run("lost-1", *(f"p{n}" for n in range(8)), "lost-2")
    assert len(library.asked) == 10


def test_nobody_waits_for_the_tenth_document_when_nine_are_there(library: Library) -> None:
    names = [f"p{n}" for n in range(9)]

    found = library.run("never", *names)

    assert found == {"summary": " / ".join(name.upper() for name in names), "failed": 0}


def test_what_is_neither_json_nor_text_arrives_as_a_reference(library: Library) -> None:
    found = library.run("pdf")

    assert found["summary"].startswith("CAS://SHA256:")


def test_without_permission_no_local_server_is_called(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_HTTP_ALLOW")

    with pytest.raises(weft.RunFailed):
        library.run("a")
    assert library.asked == []
