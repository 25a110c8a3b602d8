"""What cannot be stopped in a thread runs in a process that is killed at its limits, and replaced."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from weft.pipelines import workers
from weft.pipelines.faults import PipelineFailed
from weft.pipelines.limits import HERE_BYTES_MAX
from weft.pipelines.perform import needs_process, perform_steps
from weft.pipelines.pipeline import read_pipeline

PATIENT_S = 200.0


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    workers.POOL.close()
    yield
    workers.POOL.close()


def run(data: Any, *steps: dict[str, Any], seconds: float = PATIENT_S) -> Any:
    pipeline = read_pipeline(list(steps))
    raw = msgspec.json.encode(data)
    return msgspec.json.decode(workers.perform_killable(pipeline.steps, pipeline.source, raw, {}, seconds))


def jq(query: str) -> dict[str, Any]:
    return {"step": "jq_transform", "query": query}


@pytest.mark.parametrize(
    ("steps", "size", "apart"),
    [
        ([{"step": "top_k", "k": 1}], 10, False),
        ([{"step": "top_k", "k": 1}], HERE_BYTES_MAX + 1, True),
        ([{"step": "top_k", "k": 1}, jq(".")], 10, True),
        ([{"step": "regex_extract", "field": "a", "pattern": "b"}], 10, True),
    ],
)
def test_jq_regex_and_large_data_go_to_a_process(steps: list[Any], size: int, apart: bool) -> None:
    assert needs_process(read_pipeline(steps).steps, b" " * size, {}) is apart
    assert needs_process(read_pipeline(steps).steps, b"", {"cas://x": b" " * size}) is apart


def test_a_process_gives_what_a_thread_gives() -> None:
    rows = [{"v": number % 7, "t": f"t{number}"} for number in range(1_000)]
    steps = [{"step": "table_sort", "field": "v"}, {"step": "groupby", "by": "v", "agg": "max", "field": "t"}]

    assert run(rows, *steps) == msgspec.json.decode(
        perform_steps(read_pipeline(steps).steps, msgspec.json.encode(rows), {})
    )


def test_a_program_that_never_ends_is_killed_and_the_next_one_runs() -> None:
    assert run(1, jq(". + 1")) == 2
    (first,) = workers.POOL.idle
    with pytest.raises(PipelineFailed) as killed:
        run([{"a": 1}], {"step": "top_k", "k": 1}, jq("[limit(0; 1)] | until(false; .)"), seconds=1.0)

    assert (killed.value.code, killed.value.index) == ("pipeline.timeout", 0)
    assert first.process.poll() is not None
    assert run(1, jq(". + 1")) == 2


def test_a_program_that_takes_too_much_memory_is_refused_and_the_next_one_runs() -> None:
    with pytest.raises(PipelineFailed) as refused:
        run(None, jq('reduce range(60) as $i ("x"; . + .) | length'))

    assert refused.value.code in ("pipeline.too_large", "pipeline.bad_value")
    assert run(1, jq(". + 1")) == 2


def test_an_error_in_the_process_is_the_error_here() -> None:
    with pytest.raises(PipelineFailed) as failed:
        run([{"v": 1}, {"v": []}], {"step": "top_k", "k": 5}, {"step": "table_sort", "field": "v"}, jq("."))

    assert (failed.value.code, failed.value.index) == ("pipeline.bad_value", 1)
    assert "row 1" in failed.value.message


def test_a_program_cannot_see_the_zone_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    dates = '[(gmtime | mktime), todate, ("1970-01-01T00:00:00Z" | fromdate), strftime("%H")]'

    assert run(0, jq(dates)) == [0, "1970-01-01T00:00:00Z", 0, "00"]


def test_a_worker_that_died_while_idle_is_replaced_without_a_word() -> None:
    run(1, jq("."))
    workers.POOL.idle[0].process.kill()

    assert run(1, jq(". + 1")) == 2
