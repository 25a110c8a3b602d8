"""One trace per run tree: runs, attempts, waits and commits, with ids that derive from the runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import weft
from tests.ext.otel_kit import Collector, attributes
from tests.ext.otel_kit import collector as collector  # noqa: PLC0414 - a fixture
from tests.server.kit import API, serving
from weft.core.ids import RunId
from weft.core.trace_context import parse_traceparent, run_span, trace_of
from weft.ext.otel.configuration import configured_signals, is_installed, note_protocols

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def shop(url: str = "memory://") -> weft.App:
    app = weft.App(url)

    @app.step(retries=weft.Retry(2, delay="1ms"))
    async def charge(cents: int) -> str:
        print("charging", cents)
        if weft.task().attempt == 1:
            raise OSError("no answer")
        context = trace.get_current_span().get_span_context()
        return f"{context.trace_id:032x}-{context.span_id:016x}"

    @app.step
    def pack(what: str) -> str:
        return what

    @app.workflow
    async def parcel(ctx: weft.Context, what: str) -> str:
        return await pack(what)

    @app.workflow
    async def order(ctx: weft.Context, cents: int) -> str:
        seen = await charge(cents)
        await ctx.call(parcel("tea"))
        await ctx.sleep("1ms")
        await ctx.receive("paid")
        return seen

    @app.workflow
    async def broken(ctx: weft.Context) -> None:
        raise ValueError("no stock")

    return app


def performed(app: weft.App, *, trace: str = "") -> tuple[str, str]:
    """Run an order. Returns its uid and what its step saw."""

    async def scenario() -> tuple[str, str]:
        async with app:
            handle = await app.start("order", {"cents": 42}, id="o-1")
            await handle.send("paid")
            seen = await handle.result(timeout="30s")
            return (await app.service.row(RunId("o-1"))).uid, str(seen)

    return asyncio.run(scenario())


def named(spans: list[Any], name: str) -> list[Any]:
    return [span for span in spans if span.name == name]


def test_a_run_tree_is_one_trace(collector: Collector) -> None:
    uid, seen = performed(shop())
    spans = collector.spans()

    assert {span.trace_id.hex() for span in spans} == {f"{trace_of(uid, '', ''):032x}"}
    assert {span.name for span in spans} == {
        "order", "parcel", "charge", "pack", "child parcel", "sleep", "receive paid", "commit",
    }  # fmt: skip
    assert collector.services() == {"shop"}
    (order,), (parcel,), (child,) = (named(spans, name) for name in ("order", "parcel", "child parcel"))
    assert order.span_id.hex() == f"{run_span(uid):016x}"
    assert order.parent_span_id == b""
    assert child.parent_span_id == order.span_id
    assert parcel.parent_span_id == child.span_id
    first, second = sorted(named(spans, "charge"), key=lambda span: span.start_time_unix_nano)
    assert (first.status.code, second.status.code) == (2, 0)
    assert first.status.message == "OSError: no answer"
    assert [attributes(one)["weft.attempt"] for one in (first, second)] == [1, 2]
    assert seen == f"{second.trace_id.hex()}-{second.span_id.hex()}"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert len({span.span_id for span in spans}) == len(spans), "no span is sent twice"


def test_a_failed_run_says_why(collector: Collector) -> None:
    async def scenario() -> None:
        app = shop()
        async with app:
            handle = await app.start("broken")
            with pytest.raises(weft.RunFailed):
                await handle.result(timeout="30s")

    asyncio.run(scenario())

    (span,) = named(collector.spans(), "broken")
    assert span.status.code == 2
    assert "no stock" in span.status.message
    assert attributes(span)["weft.run.status"] == "failed"


def test_what_steps_print_belongs_to_their_attempt(collector: Collector) -> None:
    performed(shop())

    first, second = collector.log_records()
    spans = {span.span_id: span for span in collector.spans()}
    assert [record.body.string_value for record in (first, second)] == ["charging 42"] * 2
    assert [attributes(spans[record.span_id])["weft.attempt"] for record in (first, second)] == [1, 2]
    assert attributes(first)["weft.run.id"] == "o-1"


def test_spans_of_a_long_run_are_sent_while_it_goes_on(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but its plain steps and commits fills the queue, and the time of the queue never comes."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    app = weft.App("memory://")

    @app.step
    async def pack(n: int) -> int:
        return n

    @app.workflow
    async def orders(ctx: weft.Context) -> None:
        for n in range(30):
            await pack(n)
        await ctx.receive("paid")

    async def scenario() -> None:
        async with app:
            handle = await app.start("orders", id="o-1")
            async with asyncio.timeout(60):
                while len(named(collector.spans(), "pack")) < 10:
                    await asyncio.sleep(0.01)
            await handle.send("paid")
            await handle.result(timeout="30s")

    asyncio.run(scenario())


def test_metrics_count_runs_attempts_and_commits(collector: Collector) -> None:
    performed(shop())

    metrics = collector.metrics()
    ended = {attributes(point)["status"]: point.as_int for point in metrics["weft.runs.ended"].sum.data_points}
    attempts = {attributes(point)["outcome"]: point.as_int for point in metrics["weft.steps.attempts"].sum.data_points}
    assert ended == {"completed": 2, "failed": 0, "cancelled": 0}
    assert attempts == {"succeeded": 2, "failed": 1, "lost": 0}
    assert metrics["weft.commit.duration"].histogram.data_points[0].count > 0


def test_nothing_is_imported_or_sent_if_nothing_is_configured() -> None:
    assert not configured_signals().any


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ("otlp", "otlp", "otlp")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ("otlp", "", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_METRICS_EXPORTER": "none"}, ("otlp", "", "otlp")),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console", "", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, ("", "", "")),
    ],
)
def test_the_standard_variables_say_what_is_sent(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sent: tuple[str, str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert tuple(configured_signals()) == sent


# --- context in and out -------------------------------------------------------------------------------------------


def test_a_start_over_http_continues_the_trace_of_its_caller(collector: Collector) -> None:
    caller = parse_traceparent(CALLER)
    assert caller is not None
    with serving(shop()) as server:
        new = {"workflow": "parcel", "input": {"what": "tea"}, "id": "p-1"}
        assert server.post(f"{API}/runs", new, traceparent=CALLER).status == 201
        again = server.post(f"{API}/runs", new, traceparent=CALLER.replace("b7ad", "c7ad"))
        assert (again.status, again.json["created"]) == (200, False)
        server.result("p-1")
        server.start("parcel", "p-2", what="tea")
        server.post(f"{API}/runs", new | {"id": "p-3"}, traceparent="nonsense")
        server.result("p-2")
        server.result("p-3")

    first, second, third = named(collector.spans(), "parcel")
    assert first.trace_id.hex() == f"{caller.trace_id:032x}"
    assert first.parent_span_id.hex() == f"{caller.span_id:016x}"
    assert len({span.trace_id for span in (first, second, third)}) == 3


def test_a_start_in_a_span_of_the_program_belongs_to_its_trace(collector: Collector) -> None:
    parent = trace.SpanContext(0x11, 0x22, is_remote=False, trace_flags=trace.TraceFlags(1))

    async def scenario() -> None:
        app = shop()
        async with app:
            with trace.use_span(trace.NonRecordingSpan(parent)):
                handle = await app.start("parcel", {"what": "tea"})
            await handle.result(timeout="30s")

    asyncio.run(scenario())

    (span,) = named(collector.spans(), "parcel")
    assert (int.from_bytes(span.trace_id), int.from_bytes(span.parent_span_id)) == (0x11, 0x22)


def test_a_fork_begins_a_trace_with_a_link_to_its_original(collector: Collector) -> None:
    async def scenario() -> tuple[str, str]:
        app = shop()
        async with app:
            handle = await app.start("parcel", {"what": "tea"}, id="p-1")
            await handle.result(timeout="30s")
            forked = await handle.fork()
            await forked.result(timeout="30s")
            rows = [await app.service.row(RunId(one.id)) for one in (handle, forked)]
            return rows[0].uid, rows[1].uid

    original, fork = asyncio.run(scenario())

    spans = {span.span_id.hex(): span for span in named(collector.spans(), "parcel")}
    first, second = spans[f"{run_span(original):016x}"], spans[f"{run_span(fork):016x}"]
    assert first.trace_id != second.trace_id
    (link,) = second.links
    assert (link.trace_id, link.span_id) == (first.trace_id, first.span_id)
    assert second.start_time_unix_nano >= first.end_time_unix_nano


def test_a_run_of_a_schedule_has_a_link_to_it(collector: Collector) -> None:
    async def scenario() -> str:
        app = shop()
        async with app:
            await app.schedules.add("nightly", "parcel", {"what": "tea"}, cron="0 3 * * *")
            await app.schedules.trigger("nightly")
            while not (found := [run async for run in app.list(workflow="parcel", status="completed")]):
                await asyncio.sleep(0.01)
            events = [event async for event in found[0].events()]
            return str(events[0].data["schedule"])

    schedule = asyncio.run(scenario())

    (span,) = named(collector.spans(), "parcel")
    (link,) = span.links
    assert link.span_id.hex() == f"{run_span(schedule):016x}"


# --- crashes and configurations -----------------------------------------------------------------------------------


def test_a_run_that_continues_on_another_host_stays_in_its_trace(collector: Collector, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"

    async def begin() -> None:
        app = shop(url)
        async with app:
            handle = await app.start("order", {"cents": 42}, id="o-1")
            async for event in handle.events(follow=True):
                if event.kind == "message_awaited":
                    return

    async def end() -> str:
        app = shop(url)
        async with app:
            await app.get("o-1").send("paid")
            await app.get("o-1").result(timeout="30s")
            return (await app.service.row(RunId("o-1"))).uid

    asyncio.run(begin())
    uid = asyncio.run(end())

    spans = collector.spans()
    assert {span.trace_id.hex() for span in spans} == {f"{trace_of(uid, '', ''):032x}"}
    # The wait began on the first host, and the second one sends it with the time of its begin.
    (order,), (wait,) = named(spans, "order"), named(spans, "receive paid")
    assert order.start_time_unix_nano < wait.start_time_unix_nano < wait.end_time_unix_nano
    assert len({span.span_id for span in spans}) == len(spans)


def test_an_attempt_whose_process_died_is_sent_by_the_host_that_takes_over(
    collector: Collector, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/weft.db"
    code = f"import os\nimport weft\napp = weft.App({url!r})\n" + DYING
    (tmp_path / "dying.py").write_text(code)
    died = subprocess.run([sys.executable, "dying.py"], cwd=tmp_path, check=False)
    assert died.returncode == 3
    app = weft.App(url)

    @app.step
    async def risky() -> str:
        return "done"

    @app.workflow
    async def brave(ctx: weft.Context) -> str:
        return await risky()

    assert app.run("brave", id="b-1") == "done"

    first, second = sorted(named(collector.spans(), "risky"), key=lambda span: attributes(span)["weft.delivery"])
    assert first.status.message == "the process that performed it was lost"
    assert second.status.code == 0
    assert first.trace_id == second.trace_id


DYING = """
@app.step
async def risky() -> str:
    os._exit(3)

@app.workflow
async def brave(ctx: weft.Context) -> str:
    return await risky()

app.run(brave(), id="b-1")
"""


def test_a_sampler_decides_for_whole_trees(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    performed(shop())

    assert collector.spans() == []


PROGRAM = """
import asyncio
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import weft

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
app = weft.App("memory://")


@app.step
async def count() -> int:
    with trace.get_tracer("shop").start_as_current_span("inside"):
        return 3


@app.workflow
async def counting(ctx: weft.Context) -> int:
    return await count()


assert app.run(counting()) == 3
spans = {span.name: span for span in exporter.get_finished_spans()}
assert spans["inside"].parent.span_id == spans["count"].context.span_id
assert spans["inside"].context.trace_id == spans["count"].context.trace_id == spans["counting"].context.trace_id
assert spans["count"].parent.span_id == spans["counting"].context.span_id
"""


def test_a_provider_that_the_program_has_set_is_used(tmp_path: Path) -> None:
    """In a process of its own, because a provider can be set once. The exporter is the SDK's own in memory."""
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr


def test_a_host_that_traces_nothing_imports_nothing_of_opentelemetry(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", UNTRACED], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr


UNTRACED = """
import sys, weft

app = weft.App("memory://")

@app.workflow
async def alone(ctx: weft.Context) -> int:
    return 1

app.run(alone())
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""


def test_the_packages_of_the_extra_are_found() -> None:
    assert is_installed()


def test_a_variable_that_asks_for_another_protocol_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
    note_protocols()
    assert [record.getMessage().partition(" is ")[0] for record in caplog.records] == [
        "weft: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"
    ]
