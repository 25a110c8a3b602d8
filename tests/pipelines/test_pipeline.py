"""Reading a pipeline: every mistake is found before anything is performed, and says where it is."""

from typing import Any

import pytest

from tests.pipelines.kit import apply, code, refusal
from weft.errors import StepFailed
from weft.pipelines.faults import PipelineFailed
from weft.pipelines.pipeline import pipeline_faults, read_pipeline

TOP: dict[str, Any] = {"step": "top_k", "k": 1}
FETCH: dict[str, Any] = {"step": "http_request", "url": "api.example/x"}


def test_data_flows_from_each_step_to_the_next() -> None:
    flights = [{"airline": "A", "price": 30, "stops": 2}, {"airline": "B", "price": 20, "stops": 0},
               {"airline": "C", "price": 10, "stops": 1}]  # fmt: skip

    found = apply(
        flights,
        {"step": "table_filter", "condition": {"field": "stops", "op": "<=", "value": 1}},
        {"step": "table_sort", "field": "price"},
        {"step": "top_k", "k": 1},
        {"step": "table_select", "fields": ["airline"]},
    )

    assert found == [{"airline": "C"}]


@pytest.mark.parametrize(
    ("pipeline", "expected", "index"),
    [
        ([], "empty", None),
        ({}, "bad_argument", None),
        ("top_k", "bad_argument", None),
        (None, "bad_argument", None),
        ([TOP] * 21, "bad_argument", 20),
        ([TOP, {"step": "tabel_sort"}], "unknown_step", 1),
        ([TOP, "top_k"], "unknown_step", 1),
        ([TOP, {}], "unknown_step", 1),
        ([TOP, {"step": 5}], "unknown_step", 1),
        ([TOP, {"step": "top_k"}], "bad_argument", 1),
        ([TOP, {"step": "top_k", "k": 0}], "bad_argument", 1),
        ([TOP, {"step": "top_k", "k": True}], "bad_argument", 1),
        ([TOP, {"step": "top_k", "k": 1.5}], "bad_argument", 1),
        ([TOP, {"step": "top_k", "k": 1, "n": 2}], "bad_argument", 1),
        ([{"step": "table_sort", "field": "a", "order": "up"}], "bad_argument", 0),
        ([{"step": "table_filter", "condition": []}], "bad_argument", 0),
        ([{"step": "table_filter", "condition": {"field": "a", "op": "=", "value": 1}}], "bad_argument", 0),
        ([{"step": "table_filter", "condition": {"field": "a", "op": "=="}}], "bad_argument", 0),
        ([{"step": "table_select", "fields": []}], "bad_argument", 0),
        ([{"step": "join", "right": [], "on": {}}], "bad_argument", 0),
        ([{"step": "join", "right": [], "on": "a", "how": "outer"}], "bad_argument", 0),
        ([{"step": "jq_transform", "query": "x" * 4_001}], "bad_argument", 0),
        ([{"step": "jq_transform", "query": ""}], "bad_argument", 0),
        ([{"step": "regex_extract", "field": "a", "pattern": "x" * 1_001}], "bad_argument", 0),
        ([{**FETCH, "method": "DELETE"}], "bad_argument", 0),
        ([{**FETCH, "timeout": 31}], "bad_argument", 0),
        ([{**FETCH, "timeout": "soon"}], "bad_argument", 0),
        ([{**FETCH, "url": "file:///etc/passwd"}], "bad_argument", 0),
        ([{**FETCH, "url": ""}], "bad_argument", 0),
        ([{**FETCH, "params": {"a": {"b": 1}}}], "bad_argument", 0),
    ],
)
def test_a_mistake_is_found_before_anything_is_performed(pipeline: Any, expected: str, index: int | None) -> None:
    with pytest.raises(PipelineFailed) as refused:
        read_pipeline(pipeline)

    assert (refused.value.code, refused.value.index) == (f"pipeline.{expected}", index)
    assert refused.value.message.startswith("/pipeline" if index is None else f"/pipeline/{index}: ")


def test_a_misspelt_name_gets_a_suggestion() -> None:
    assert "table_sort" in refusal([], {"step": "tabel_sort", "field": "a"}).hint
    assert "field" in refusal([], {"step": "table_sort", "feild": "a"}).hint


def test_all_mistakes_of_a_document_are_found_and_templates_are_left_for_later() -> None:
    pipeline = [{"step": "top_k", "k": "${input.k}"}, {"step": "top_k", "k": "x"}, {"step": "top_k", "j": "${input.k}"}]

    assert [fault.index for fault in pipeline_faults(pipeline, templates=True)] == [1, 2]
    assert [fault.index for fault in pipeline_faults(pipeline)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("steps", "effect"),
    [([TOP], "pure"), ([FETCH, TOP], "idempotent"), ([FETCH, {**FETCH, "method": "POST"}], "irreversible")],
)
def test_the_effect_follows_from_the_requests(steps: list[Any], effect: str) -> None:
    assert read_pipeline(steps).effect == effect


def test_a_pipeline_is_cut_at_its_requests() -> None:
    cut = read_pipeline([TOP, FETCH, FETCH, TOP, TOP]).segments()

    assert [(request.index if request else None, [placed.index for placed in steps]) for request, steps in cut] == [
        (None, [0]), (1, []), (2, [3, 4]),
    ]  # fmt: skip


def test_a_failure_of_a_pipeline_is_a_failure_of_a_step() -> None:
    failed = refusal({}, TOP)

    assert isinstance(failed, StepFailed)
    assert failed.failure.code == "pipeline.not_rows"


# --- limits -------------------------------------------------------------------------------------------------------


def test_a_result_that_is_too_large_is_refused() -> None:
    rows: list[dict[str, Any]] = [{}] * 10_000
    fields = ["f" * 90 + str(number) for number in range(20)]

    assert len(apply(rows, TOP, {"step": "table_select", "fields": fields})) == 1
    assert code(rows, {"step": "table_select", "fields": fields}) == ("pipeline.too_large", 0)


def test_more_rows_than_a_million_are_refused() -> None:
    failed = refusal([{}] * 1_000_001, {"step": "top_k", "k": 1})

    assert failed.code == "pipeline.too_large"
    assert "1,000,001 rows" in failed.message


def test_a_result_that_no_store_keeps_is_refused() -> None:
    assert code("a", {"step": "jq_transform", "query": '"a" + "\\u0000"'}) == ("pipeline.bad_value", 0)
    assert code(1, {"step": "jq_transform", "query": "reduce range(200) as $i (1; [.])"}) == ("pipeline.too_large", 0)
