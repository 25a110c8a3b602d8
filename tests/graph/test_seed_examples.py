"""The graph examples of seed 002 run on the engine: their JSON as it stands, and what is only drawn as it is drawn."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import pytest

import weft
from tests.graph import seeds
from tests.graph.documents import Document
from tests.graph.test_document_seeds import AROUND, drawn, names_in
from tests.patterns.kit import Bench, after, same, went
from weft.conditions import sandbox
from weft.documents.spellings import fold_condition, inline_blobs
from weft.documents.text import read_text
from weft.testing import World


def among(example: str, first: str = "", **answers: Any) -> Bench:
    """A node of the seeds in a document in which everything that it names exists; `first` leads to it."""
    node = read_text(example).data
    own = node.get("id", node.get("node_id"))
    others = [name for name in dict.fromkeys([*names_in(node), *([first] if first else [])]) if name != own]
    stubs: list[Document] = [{"id": name, "type": "task"} for name in others]
    for stub in stubs:
        if stub["id"] == first:
            stub["dependents"] = [own]
    return Bench({"nodes": [node, *stubs]}, answers)


# --- drawn graphs: tokens, joins, terminals ----------------------------------------------------------------------


def test_a_sequence_runs_in_its_order() -> None:
    bench = Bench(drawn("A -> B -> C"), {"A": {"n": 1}, "B": lambda given: {"n": given["n"] + 1}})
    run = bench.start()

    assert run.result() == {}
    assert went(run) == ["A", "B", "C"]
    assert bench.given("C") == [{"n": 2}]


@pytest.mark.parametrize("slow", ["B", "C"])
def test_a_parallel_fan_out_meets_once_whoever_comes_first(slow: str) -> None:
    bench = Bench(drawn("A -> B, C -> D"), {slow: after(60, slow)})
    run = bench.start()

    run.result()
    assert went(run) == ["A", *sorted("BC", key=lambda name: name == slow), "D"]
    assert bench.given("D") == [{"B": "B", "C": "C"}]


@pytest.mark.parametrize("order", list(permutations("ABC")), ids="".join)
def test_a_triple_fan_in_waits_for_all_three_in_every_order(order: tuple[str, ...]) -> None:
    bench = Bench(drawn("A, B, C -> E"), {name: after(90 * n, name) for n, name in enumerate(order, 1)})
    run = bench.start()
    for n in range(3):
        assert bench.times("E") == 0, f"after {order[:n]} it has to wait"
        bench.world.advance("90s")

    run.result()
    assert went(run) == [*order, "E"]
    assert bench.given("E") == [{"A": "A", "B": "B", "C": "C"}]


def test_the_merge_of_user_and_orders_gets_both_payloads() -> None:
    join = read_text(seeds.JOIN).data
    document = {
        "nodes": [
            {"id": "fetch_user", "type": "task"},
            {"id": "fetch_orders", "type": "task"},
            {**join, "dependents": ["send_email"]},
            {"id": "send_email", "type": "task"},
        ]
    }
    bench = Bench(document, {"fetch_user": {"name": "Ada"}, "fetch_orders": [[1, 2]], "merge_data": "a letter"})
    run = bench.start()

    run.result()
    assert bench.given("merge_data") == [{"fetch_user": {"name": "Ada"}, "fetch_orders": [1, 2]}]
    assert bench.given("send_email") == ["a letter"]
    assert went(run)[2:] == ["merge_data", "send_email"]


def test_data_enrichment_combines_weather_traffic_and_news() -> None:
    sources = ("weather", "traffic", "news")
    answers = {f"fetch_{name}": (lambda given, name=name: f"{name} of {given['city']}") for name in sources}
    bench = Bench(
        drawn("start -> fetch_weather, fetch_traffic, fetch_news -> combine -> display"),
        {"start": same, "combine": lambda given: sorted(given.values()), **answers},
    )

    bench.run(city="NYC")
    assert bench.given("combine") == [{f"fetch_{name}": f"{name} of NYC" for name in sources}]
    assert bench.given("display") == [["news of NYC", "traffic of NYC", "weather of NYC"]]


@pytest.mark.parametrize(("value", "terminal"), [(900, "high_value"), (500, "medium_value"), (5, "low_value")])
def test_a_run_ends_at_whichever_terminal_its_branch_leads_to(value: int, terminal: str) -> None:
    rules = [("high_value", "output.value > 800"), ("medium_value", "output.value > 100")]
    branch = {
        "rules": [
            {"condition": {"type": "cel", "expression": text}, "next_nodes": [to]} for to, text in rules
        ],
        "default": ["low_value"],
    }  # fmt: skip
    document = drawn("A -> Branch -> high_value, medium_value, low_value", Branch={"branch": branch})
    run = Bench(document, {"Branch": {"value": value}}).start()

    run.result()
    assert went(run) == ["A", "Branch", terminal]


# --- a task, its retries, its limits -----------------------------------------------------------------------------


def test_a_task_is_tried_three_times_and_then_leads_to_both_checks() -> None:
    bench = among(seeds.TASK, validate_customer=[ConnectionError("1"), ConnectionError("2"), {"ok": True}])
    before = bench.world.now_ms
    run = bench.start(customer="c-1")

    run.result()
    assert went(run)[0] == "validate_customer"
    assert sorted(went(run)[1:]) == ["credit_check", "kyc_check"]
    assert bench.given("validate_customer") == [{"customer": "c-1"}] * 3
    assert bench.given("kyc_check") == bench.given("credit_check") == [{"ok": True}]
    assert bench.world.now_ms - before >= 900 + 1800, "a second, then two, less up to a tenth"


def test_a_task_that_fails_three_times_becomes_a_dead_letter() -> None:
    bench = among(seeds.TASK, validate_customer=ConnectionError("no answer"))
    run = bench.start(customer="c-1")

    with pytest.raises(weft.RunFailed, match="no answer"):
        run.result()
    assert bench.times("validate_customer") == 3
    [raised] = [event.data for event in run.events if event.kind == "failure_raised"]
    assert (raised["node"], raised["failure"]["message"]) == ("validate_customer", "no answer")


def test_a_task_fails_at_its_deadline_whatever_it_does() -> None:
    bench = among(seeds.TASK, validate_customer=after(3600, {"ok": True}))
    before = bench.world.now_ms

    with pytest.raises(weft.RunFailed):
        bench.run()
    assert bench.world.now_ms - before == 30_000


# --- loops -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", [0, 1, 4])
def test_an_api_is_called_until_it_succeeds(failures: int) -> None:
    answers = [{"status": 503}] * failures + [{"status": 200}]
    bench = among(seeds.LOOP, "prepare_request", call_external_api=answers)
    run = bench.start()

    run.result()
    assert went(run) == ["prepare_request", *["call_external_api"] * (failures + 1), "process_response"]
    assert bench.given("process_response") == [{"status": 200}]


def test_an_api_that_never_succeeds_leads_to_the_timeout_path_after_five_calls() -> None:
    bench = among(seeds.LOOP, "prepare_request", call_external_api={"status": 503})
    run = bench.start()

    run.result()
    assert went(run) == ["prepare_request", *["call_external_api"] * 5, "error_dlq"]


def test_a_loop_goes_on_until_the_answer_fits_a_schema() -> None:
    document = {"nodes": [{"id": "a", "type": "task", **read_text(seeds.LOOP_SCHEMA).data}]}
    good = {"status": "success", "data": [1]}

    bench = Bench(document, {"a": [{"status": "success", "data": []}, {"status": "busy"}, good]})
    bench.run()
    assert bench.times("a") == 3

    bench = Bench(document, {"a": {"status": "busy"}})
    with pytest.raises(weft.RunFailed, match="a was executed 3 times"):
        bench.run()


# --- branches ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "revenue", "taken"),
    [
        (85, 200_000, ["enterprise_sales", "send_gift"]),
        (85, 100_000, ["standard_sales"]),
        (50, 0, ["standard_sales"]),
        (49, 200_000, ["nurture_campaign"]),
    ],
)
def test_a_customer_is_branched_by_score(score: int, revenue: int, taken: list[str]) -> None:
    bench = among(seeds.BRANCH, "enrich_data", enrich_data={"revenue": revenue}, score_customer={"score": score})
    run = bench.start()

    run.result()
    assert went(run) == ["enrich_data", "score_customer", *taken]


def test_a_score_that_is_none_fails_the_node_with_the_expression() -> None:
    bench = among(seeds.BRANCH, "enrich_data", enrich_data={"revenue": 1}, score_customer={"points": 3})

    with pytest.raises(weft.RunFailed, match=r"output\.score"):
        bench.run()


@pytest.mark.parametrize("decision", [["high_value_sales", "send_gift"], ["disqualify"], []])
def test_a_node_may_decide_at_run_time_where_to_go(decision: list[str]) -> None:
    options = ["high_value_sales", "send_gift", "disqualify"]
    document = {
        "nodes": [{"id": name, "type": "task"} for name in ["A", "agent", *options, "manual_review"]],
        "transitions": [
            {"from": "A", "to": "agent"},
            *({"from": "agent", "to": to, "priority": 1, "condition": f'"{to}" in output.next'} for to in options),
            {"from": "agent", "to": "manual_review", "priority": 2},
        ],
    }
    run = Bench(document, {"agent": {"next": decision}}).start()

    run.result()
    assert went(run) == ["A", "agent", *(decision or ["manual_review"])]


# --- people ------------------------------------------------------------------------------------------------------


def test_a_run_waits_for_its_manager_and_goes_on_when_he_has_decided() -> None:
    bench = among(seeds.HUMAN, "validate_high_value_deal")
    run = bench.start()
    bench.world.advance("5m")
    [waiting] = run.waiting_for()
    assert waiting.what.startswith("an answer of sales-manager@company.com")
    assert bench.times("setup_enterprise_account") == 0

    run.answer("manager_approval", approved=True, by="sales-manager@company.com")

    run.result()
    assert went(run) == ["validate_high_value_deal", "manager_approval", "setup_enterprise_account"]


def test_two_days_of_silence_are_a_yes() -> None:
    bench = among(seeds.HUMAN, "validate_high_value_deal")
    before = bench.world.now_ms
    run = bench.start()

    run.result()
    assert went(run)[-1] == "setup_enterprise_account"
    assert bench.world.now_ms - before == 48 * 3_600_000


def test_a_rejection_takes_its_own_path() -> None:
    node = {**read_text(seeds.HUMAN).data, "dependencies": [], "rejection_path": ["tell_customer"]}
    stubs = [{"id": name, "type": "task"} for name in ("setup_enterprise_account", "tell_customer")]
    run = Bench({"nodes": [node, *stubs]}).start()

    run.answer("manager_approval", approved=False, by="sales-manager@company.com")

    run.result()
    assert went(run) == ["manager_approval", "tell_customer"]


@pytest.mark.parametrize("payload", [{"deal": 7, "approved": "maybe"}, {"deal": 7, "text": "x" * 300_000}])
@pytest.mark.parametrize("spelling", [{"type": "human"}, {"human": {"title": "Well?"}}])
def test_what_a_human_was_given_goes_on_with_the_decision(payload: dict[str, Any], spelling: dict[str, Any]) -> None:
    app = weft.App("memory://")

    @app.step
    def deal() -> dict[str, Any]:
        return payload

    @app.step
    def ship(input: dict[str, Any]) -> list[Any]:
        return [len(input.get("text", "")), {key: value for key, value in input.items() if key != "text"}]

    graph = app.graph({
        "name": "g",
        "nodes": {
            "deal": {"step": "deal", "dependents": ["human"]},
            "human": {**spelling, "dependents": ["ship"], "save": {"state.deal": "${output.deal}"}},
            "ship": {"step": "ship", "save": {"state.given": "${output}"}},
        },
    })  # fmt: skip
    world = World(app)
    run = world.start(graph, {})
    run.answer("human", by="ann", reason="fine")

    result = run.result()
    length, given = result["given"]
    assert result["deal"] == 7
    assert length == len(payload.get("text", ""))
    assert given.pop("at") == given.pop("decided_at") > 0
    decision = {"approved": True, "by": ["ann"], "reason": "fine", "form": None}
    assert given == {"deal": 7, **decision, "decision": "approve", "comments": "fine", "decided_by": ["ann"]}


# --- every kind of condition -------------------------------------------------------------------------------------

CUSTOMERS = {"data": {"customers": [{"tier": "free"}, {"tier": "enterprise"}]}}
GROWTH = """\
def evaluate(output, context):
    \"\"\"
    output: current node output
    context: dict of all previous node outputs
    \"\"\"
    # Complex business logic
    revenue = output.get('revenue', 0)
    previous_revenue = context.get('last_month', {}).get('output', {}).get('revenue', 0)

    growth_rate = (revenue - previous_revenue) / previous_revenue if previous_revenue > 0 else 0

    # Multi-factor decision
    if growth_rate > 0.2 and output.get('churn_rate', 1) < 0.05:
        return True

    return False
"""


@pytest.mark.parametrize(
    ("name", "output", "context", "holds"),
    [
        ("cel", {"status": 500, "retry_count": 4}, {}, True),
        ("cel", {"status": 500, "retry_count": 5}, {}, False),
        ("cel_context", {"score": 80}, {"enrich_data": {"revenue": 100_001}}, True),
        ("cel_context", {"score": 80}, {"enrich_data": {"revenue": 100_000}}, False),
        ("schema_ref", {}, {}, True),
        ("schema_ref", [], {}, False),
        ("jsonpath", CUSTOMERS, {}, True),
        ("jsonpath", {"data": {"customers": [{"tier": "free"}]}}, {}, False),
        ("jsonpath_sum", {"transactions": [{"amount": 9_000}, {"amount": 1_001}]}, {}, True),
        ("jsonpath_sum", {"transactions": [{"amount": 9_000}, {"amount": 1_000}]}, {}, False),
        ("cross_node", {"final_score": 3}, {"initial_score": {"score": 2}}, True),
        ("cross_node", {"final_score": 2}, {"initial_score": {"score": 2}}, False),
        ("cross_node_expression", {"revenue": 111.0}, {"forecast": {"predicted_revenue": 100.0}}, True),
        ("cross_node_expression", {"revenue": 110.0}, {"forecast": {"predicted_revenue": 100.0}}, False),
        ("composite_and", {"status": "failed", "errors": [1, 2]}, {}, True),
        ("composite_and", {"status": "failed", "errors": [1, 2, 3]}, {}, False),
        ("composite_and", {"status": "success", "errors": []}, {}, False),
        ("composite_or", {"score": 80}, {"referral_check": {"is_referral": False}}, True),
        ("composite_or", {"score": 10}, {"referral_check": {"is_referral": True}}, True),
        ("composite_or", {"score": 10}, {"referral_check": {"is_referral": False}}, False),
    ],
)
def test_every_example_of_a_condition_decides_an_edge(name: str, output: Any, context: Any, holds: bool) -> None:
    example = read_text(seeds.CONDITIONS[name]).data["condition"]
    assert conditioned(example, output, context) is holds


@pytest.mark.parametrize(("revenue", "churn", "holds"), [(130, 0.01, True), (120, 0.01, False), (130, 0.05, False)])
def test_the_python_of_the_seeds_decides_an_edge(
    revenue: int, churn: float, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox._Sandbox, "enabled", True)
    example = {**read_text(seeds.PYTHON).data["condition"], "code": GROWTH}
    del example["code_ref"]

    found = conditioned(example, {"revenue": revenue, "churn_rate": churn}, {"last_month": {"revenue": 100}})

    assert found is holds


def conditioned(condition: Any, output: Any, context: dict[str, Any]) -> bool:
    """Whether a token takes the edge with this condition; `context` are outputs of nodes before."""
    resolve = AROUND.resolve
    assert resolve is not None
    before = [*context, "a"]
    document = {
        "nodes": [{"id": node, "type": "task"} for node in [*before, "yes", "no"]],
        "transitions": [
            *({"from": one, "to": other} for one, other in pairwise(before)),
            {"from": "a", "to": "yes", "priority": 1, "condition": inline_blobs(fold_condition(condition), resolve)},
            {"from": "a", "to": "no", "priority": 2},
        ],
    }
    answers = {**context, "a": [output]}
    run = Bench(document, answers).start()
    run.result()
    assert went(run)[:-1] == before
    return went(run)[-1] == "yes"


# --- the payment retry: loop, branch and a composite in one node -------------------------------------------------


def payment(*answers: dict[str, Any]) -> Bench:
    return among(
        seeds.PAYMENT, "calculate_total", calculate_total={"final_amount": 1_200}, call_payment_api=list(answers)
    )


def paid(amount: int) -> dict[str, Any]:
    return {"status": "success", "amount": amount}


def failed(code: str, amount: int = 1_200) -> dict[str, Any]:
    return {"status": "failed", "error_code": code, "amount": amount}


@pytest.mark.parametrize(
    ("answers", "calls", "taken"),
    [
        ([paid(1_200)], 1, ["send_premium_confirmation", "update_crm"]),
        ([paid(999)], 1, ["send_standard_confirmation"]),
        ([failed("TIMEOUT"), failed("RATE_LIMIT"), paid(1_200)], 3, ["send_premium_confirmation", "update_crm"]),
        ([failed("TIMEOUT")], 5, ["refund_customer"]),
        ([failed("CARD_EXPIRED")], 1, ["manual_review"]),
        ([failed("TEMP_ERROR"), failed("TEMP_ERROR", amount=7)], 2, ["manual_review"]),
    ],
    ids=["large", "small", "third time", "never", "no retry helps", "another amount"],
)
def test_a_payment_is_retried_while_it_may_help(answers: list[dict[str, Any]], calls: int, taken: list[str]) -> None:
    run = payment(*answers).start()

    run.result()
    assert went(run)[: calls + 1] == ["calculate_total", *["call_payment_api"] * calls]
    assert sorted(went(run)[calls + 1 :]) == taken


# --- taking back -------------------------------------------------------------------------------------------------


def charged(**answers: Any) -> Bench:
    charge = {**read_text(seeds.COMPENSATOR).data, "dependents": ["ship"]}
    return Bench({"nodes": [charge, {"id": "ship", "type": "task"}]}, answers)


def test_a_failed_run_refunds_the_charge() -> None:
    bench = charged(**{"stripe.charge": {"charge": "ch-1"}, "ship": weft.Critical("no van")})

    with pytest.raises(weft.RunFailed, match="no van"):
        bench.run(amount=5)
    assert bench.times("stripe.refund") == 1


def test_a_cancelled_run_refunds_the_charge_and_tries_that_three_times() -> None:
    bench = charged(**{"ship": after(3600, "sent"), "stripe.refund": ConnectionError("no answer")})
    run = bench.start(amount=5)
    bench.world.advance("1m")
    run.cancel("by hand")

    with pytest.raises(weft.RunCancelled):
        run.result()
    assert bench.times("stripe.refund") == 3


def test_a_charge_that_failed_is_not_refunded() -> None:
    bench = charged(**{"stripe.charge": weft.Critical("declined")})

    with pytest.raises(weft.RunFailed, match="declined"):
        bench.run()
    assert bench.times("stripe.refund") == 0
