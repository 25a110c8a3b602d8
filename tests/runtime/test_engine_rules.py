"""The engine's rules, one by one: which tests hold each of them, and those that need a whole engine, here.

``RULES`` names for every rule the tests that fail when it is removed; a test below sees that they exist.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.code.desk import CALM, Desk
from tests.code.timeless import calm
from tests.runtime.flaky import FlakyStore, Script
from weft.core import commands as c
from weft.core import events as e
from weft.core.ids import Epoch, Millis
from weft.ports.store import Mail

ROOT = Path(__file__).parents[2]
HERE = "tests/runtime/test_engine_rules.py"
LAWS = "tests/core/test_laws.py"
MACHINE = "tests/core/test_machine.py"
CODE = "tests/code"

RULES: dict[int, list[str]] = {
    1: [
        "tests/contract/test_commit.py::test_a_refused_append_harms_no_other",
        "tests/runtime/test_commit.py::test_one_append_per_run_and_batch",
        "tests/runtime/test_commit.py::test_a_batch_that_the_store_chokes_on_is_taken_apart_and_the_guilty_run_named",
        f"{HERE}::test_1_a_run_that_the_store_chokes_on_is_set_aside_and_the_others_go_on",
        f"{CODE}/test_limits.py::test_an_append_larger_than_a_batch_may_be_is_written_in_pieces",
        f"{CODE}/test_values.py::test_what_no_store_can_hold_is_refused_at_every_door",
    ],
    2: [
        f"{HERE}::test_2_every_answer_waits_until_what_it_was_decided_on_is_durable",
        f"{CODE}/test_step.py::test_nothing_is_handed_out_before_it_is_recorded",
    ],
    3: [
        f"{HERE}::test_3_a_commit_without_an_answer_is_applied_once_whether_it_went_through_or_not",
        f"{HERE}::test_3_a_step_in_flight_outlives_a_reload_and_is_not_performed_again",
        f"{HERE}::test_3_a_start_without_an_answer_makes_one_run",
        "tests/runtime/test_worker.py::test_a_result_stays_in_the_table_until_it_was_taken",
        "tests/sim/test_chaos.py::test_no_world_breaks_a_promise",
    ],
    4: [
        f"{HERE}::test_4_the_epoch_rises_with_every_claim_and_the_one_before_can_write_nothing",
        "tests/contract/test_ownership.py::test_a_claim_makes_an_owner_and_raises_the_epoch",
        "tests/contract/test_commit.py::test_an_append_under_an_old_epoch_is_refused",
    ],
    6: [
        "tests/contract/test_hosts.py::test_a_host_that_stands_still_for_its_lease_is_dead",
        "tests/contract/test_hosts.py::test_each_observer_has_a_clock_of_its_own",
        "tests/runtime/test_duties.py::test_a_host_beats_while_it_lives",
    ],
    7: [
        f"{MACHINE}::test_only_the_live_attempt_and_delivery_count",
        f"{MACHINE}::test_a_loss_counts_hand_outs_and_a_failure_counts_attempts",
    ],
    8: [
        f"{HERE}::test_8_a_task_that_is_performed_here_has_no_row",
        f"{MACHINE}::test_the_first_loss_is_handed_out_at_once_and_later_ones_wait_longer",
        f"{MACHINE}::test_what_may_run_once_is_never_handed_out_twice",
        f"{CODE}/test_step.py::test_a_step_that_takes_its_process_down_each_time_is_given_up",
        f"{CODE}/test_step.py::test_a_step_that_is_not_registered_here_waits_for_a_process_that_has_it",
    ],
    9: [
        "tests/runtime/test_duties.py::test_a_run_with_nothing_to_do_leaves_memory_after_a_while_and_not_before",
        "tests/runtime/test_duties.py::test_a_run_is_not_released_while_mail_waits_for_it",
        "tests/runtime/test_duties.py::test_a_run_with_a_step_under_way_is_not_released",
        "tests/runtime/test_duties.py::test_above_the_limit_those_idle_longest_leave_at_once",
        "tests/runtime/test_duties.py::test_a_run_at_rest_comes_back_when_it_is_due_also_when_many_are_due_at_once",
        "tests/runtime/test_duties.py::test_a_run_at_rest_comes_back_for_mail_of_another_process",
    ],
    10: [
        f"{LAWS}::test_effects_issued_less_those_answered_are_what_is_outstanding",
        f"{LAWS}::test_a_run_that_is_over_asks_for_nothing_more",
    ],
    11: [
        f"{CODE}/test_children.py::test_a_child_goes_on_after_a_crash_and_is_not_started_twice",
        f"{CODE}/test_children.py::test_a_child_of_a_taken_id_fails_and_its_parent_hears_of_it",
        "tests/contract/test_mail.py::test_mail_between_runs_goes_with_the_append",
        "tests/contract/test_mail.py::test_mail_from_a_run_to_one_that_is_over_or_unknown_is_dropped",
    ],
    12: [
        f"{MACHINE}::test_the_key_of_a_task_names_the_incarnation_and_the_place_and_nothing_else",
        f"{MACHINE}::test_the_uid_of_a_child_derives_from_its_parent_and_its_place_in_the_log",
        f"{CODE}/test_retry_run.py::test_the_key_of_a_step_is_the_same_after_a_retry_by_hand",
    ],
    13: [
        f"{HERE}::test_13_mail_that_was_accepted_is_taken_in_before_a_run_may_end",
        "tests/contract/test_mail.py::test_mail_that_comes_after_a_load_stops_the_end",
    ],
    14: [
        f"{CODE}/test_messages.py::test_the_same_key_at_the_same_moment_is_one_message",
        f"{CODE}/test_messages.py::test_another_body_under_a_used_key_is_refused",
        "tests/contract/test_keys.py::test_keys_are_kept_after_the_end_and_looked_up_before_the_state",
        f"{HERE}::test_14_a_rejection_uses_up_no_key",
    ],
    15: [
        f"{CODE}/test_messages.py::test_a_message_sent_in_time_beats_the_timeout_although_it_is_read_late",
        f"{HERE}::test_15_mail_accepted_before_the_deadline_wins_although_nobody_looked",
    ],
    16: [
        f"{MACHINE}::test_a_timer_that_fires_early_decides_nothing",
        "tests/runtime/test_timers.py::test_a_clock_that_jumps_forward_is_noticed_within_a_look",
        f"{CODE}/test_sleep.py::test_a_clock_that_jumps_forward_ends_a_sleep_and_one_that_jumps_back_does_not_end_it_early",
        f"{CODE}/test_recorded_values.py::test_the_time_never_goes_back_within_a_run",
    ],
    17: [
        "tests/runtime/test_commit.py::test_what_is_submitted_while_a_commit_is_under_way_goes_into_the_next_one_ordered_by_run"
    ],
    18: [
        f"{LAWS}::test_a_snapshot_and_the_tail_give_the_same_state_as_the_whole_log",
        f"{CODE}/test_loop.py::test_a_long_loop_has_a_small_state_and_a_small_snapshot_at_every_moment",
        f"{CODE}/test_loop.py::test_a_long_loop_does_not_grow_the_tables_beside_the_state_either",
        "tests/runtime/test_duties.py::test_a_run_released_with_a_long_tail_leaves_a_snapshot_and_comes_back_from_it",
        "tests/contract/test_runs.py::test_a_snapshot_of_another_fold_is_ignored",
    ],
    19: [
        f"{HERE}::test_19_a_run_whose_log_is_of_a_newer_format_is_left_alone",
        f"{CODE}/test_versions.py::test_a_run_of_a_version_that_nobody_has_waits_for_it",
    ],
    20: [
        "tests/runtime/test_private_loop.py::test_what_is_ready_runs_in_the_order_in_which_it_became_ready",
        f"{CODE}/test_foreign_await.py::test_a_foreign_await_holds_the_run_with_the_line_and_a_hint",
        f"{CODE}/test_prefixes.py::test_cut_between_any_two_commands_the_code_asks_for_the_rest",
    ],
    21: [
        f"{CODE}/test_asyncio.py::test_each_task_has_a_scope_of_its_own_and_counts_for_itself",
        f"{CODE}/test_divergence.py::test_calls_of_one_name_that_changed_places_are_found_by_their_arguments",
        f"{CODE}/test_divergence.py::test_a_step_that_is_no_longer_called_is_reported_and_not_fatal",
        f"{CODE}/test_divergence.py::test_tolerant_replay_uses_what_was_recorded_and_says_so",
    ],
    22: [
        f"{CODE}/test_eviction.py::test_a_step_in_finally_is_not_performed_when_the_code_is_only_evicted",
        f"{CODE}/test_eviction.py::test_every_call_raises_evicted_again",
        f"{CODE}/test_cancel.py::test_finally_may_use_steps",
    ],
    23: [
        f"{CODE}/test_undo.py::test_every_round_of_a_loop_is_undone_also_those_that_left_the_history",
        f"{CODE}/test_undo.py::test_a_step_with_an_undo_that_loses_a_race_may_end_first_and_is_then_undone",
        f"{CODE}/test_undo.py::test_an_unknown_outcome_is_undone_too_without_a_result",
        f"{MACHINE}::test_undo_is_newest_first_and_one_at_a_time",
    ],
    24: [f"{CODE}/test_values.py::test_large_values_go_through_blobs_wherever_they_pass"],
    25: [
        "tests/runtime/test_commit.py::test_blobs_are_put_before_the_append_that_names_them",
        "tests/contract/test_blobs.py::test_what_a_run_refers_to_stays",
        "tests/contract/test_blobs.py::test_putting_again_keeps_it_alive",
    ],
    26: [
        f"{CODE}/test_limits.py::test_more_commands_than_a_mailbox_holds_are_refused_and_the_rest_are_kept",
        f"{CODE}/test_limits.py::test_a_crowd_of_runs_is_refused_nothing_and_all_end",
        f"{HERE}::test_26_a_body_that_awaits_a_run_gives_up_its_slot_meanwhile",
    ],
    27: [
        f"{LAWS}::test_the_status_changes_only_as_the_table_says_and_every_change_happens",
        f"{CODE}/test_pause.py::test_messages_and_times_of_the_pause_are_told_in_the_order_of_the_log",
        f"{CODE}/test_cancel.py::test_cancel_beats_pause",
        f"{CODE}/test_cancel.py::test_whatever_is_first_in_the_log_wins",
        f"{HERE}::test_27_a_log_that_cannot_be_read_is_marked_on_the_row_and_harms_no_other",
    ],
}
NOT_YET = {5: "Postgres", 28: "statements that a step writes into the same store", 29: "Redis as the hot path"}


def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_rule_that_applies_to_one_host_names_tests_that_exist() -> None:
    assert sorted([*RULES, *NOT_YET]) == list(range(1, 30))
    known: dict[str, set[str]] = {}
    for rule, names in RULES.items():
        assert names, rule
        for name in names:
            path, _, test = name.partition("::")
            assert test in known.setdefault(path, names_in(path)), f"rule {rule}: {name}"


# --- the rules that need a whole engine --------------------------------------------------------------------------


def counting() -> tuple[weft.App, Any, list[str]]:
    """An app whose workflow performs two steps around a message, and a ledger of the steps."""
    app = weft.App("memory://")
    ledger: list[str] = []

    @app.step
    async def work(name: str) -> str:
        ledger.append(name)
        return name

    @app.workflow
    async def flow(ctx: weft.Context, name: str) -> list[Any]:
        return [await work(f"{name} first"), await ctx.receive("n", int), await work(f"{name} second")]

    return app, flow, ledger


def flaky(app: weft.App, *mishaps: Any, **settings: Any) -> tuple[Desk, Script]:
    script = Script(*mishaps)
    desk = Desk(app, settings=msgspec.structs.replace(CALM, **settings))
    desk.store = FlakyStore(script)
    return desk, script


def test_1_a_run_that_the_store_chokes_on_is_set_aside_and_the_others_go_on() -> None:
    app, flow, _ = counting()

    async def scene() -> list[Any]:
        runs = [await app.start(flow(name), id=name) for name in "abc"]
        await calm()
        script.poison = desk.store.content.ids["b"]  # type: ignore[index]
        sends = [asyncio.create_task(run.send("n", 1)) for run in runs]
        done = [await runs[0].result(), await runs[2].result()]
        await asyncio.wait(sends)
        assert isinstance(sends[1].exception(), weft.StoreError)
        return done

    desk, script = flaky(app)
    assert desk.play(scene) == [[f"{name} first", 1, f"{name} second"] for name in "ac"]
    run = desk.store.content.runs[desk.store.content.ids["b"]]  # type: ignore[index]
    assert run.fault is not None
    assert run.status == "held"


def test_2_every_answer_waits_until_what_it_was_decided_on_is_durable() -> None:
    app, flow, ledger = counting()

    async def scene() -> None:
        script.gate = asyncio.Event()
        starting = asyncio.create_task(app.start(flow("x"), id="x"))
        await asyncio.sleep(3)
        assert not starting.done()
        assert ledger == []
        script.gate.set()
        run = await starting
        await calm()
        script.gate.clear()
        answers = [
            asyncio.create_task(act) for act in (run.send("n", 1, key="k"), run.send("n", 1, key="k"), run.result())
        ]
        await asyncio.sleep(3)  # a command is given up a second later
        assert not any(answer.done() for answer in answers)
        script.gate.set()
        await asyncio.wait(answers)

    desk, script = flaky(app)
    desk.play(scene)
    assert desk.kinds("x").count("message_received") == 1


@pytest.mark.parametrize("mishap", ["lost before", "lost after"])
@pytest.mark.parametrize("at", range(7))
def test_3_a_commit_without_an_answer_is_applied_once_whether_it_went_through_or_not(mishap: str, at: int) -> None:
    app, flow, ledger = counting()

    async def scene() -> Any:
        run = await app.start(flow("x"), id="x")
        await run.send("n", 1, key="k")
        return await run.result()

    desk, _ = flaky(app, *["fine"] * at, mishap)
    assert desk.play(scene) == ["x first", 1, "x second"]
    assert ledger == ["x first", "x second"]
    kinds = desk.kinds("x")
    assert kinds.count("message_received") == 1
    assert kinds.count("task_succeeded") == 2
    assert [stored.seq for stored in desk.stored("x")] == list(range(1, len(kinds) + 1))


def test_3_a_step_in_flight_outlives_a_reload_and_is_not_performed_again() -> None:
    app = weft.App("memory://")
    begun: list[int] = []

    @app.step
    async def slow() -> str:
        begun.append(1)
        await asyncio.sleep(30)
        return "done"

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await slow()

    async def scene() -> str:
        run = await app.start(flow(), id="x")
        await asyncio.sleep(5)
        script.mishaps.append("lost before")
        await run.send("n", 1)
        return await run.result()

    desk, script = flaky(app)
    assert desk.play(scene) == "done"
    assert begun == [1]
    assert "task_lost" not in desk.kinds("x")
    run = desk.store.content.runs[desk.store.content.ids["x"]]  # type: ignore[index]
    assert run.epoch == Epoch(2)


@pytest.mark.parametrize("mishap", ["lost before", "lost after"])
def test_3_a_start_without_an_answer_makes_one_run(mishap: str) -> None:
    app, flow, ledger = counting()

    async def scene() -> Any:
        runs = await asyncio.gather(app.start(flow("x"), id="x"), app.start(flow("x"), id="x"))
        await runs[0].send("n", 1)
        return await runs[1].result()

    desk, _ = flaky(app, mishap)
    assert desk.play(scene) == ["x first", 1, "x second"]
    assert len(desk.store.content.runs) == 1
    assert ledger == ["x first", "x second"]


def test_4_the_epoch_rises_with_every_claim_and_the_one_before_can_write_nothing() -> None:
    app, flow, _ = counting()

    async def begin() -> None:
        await app.start(flow("x"), id="x")
        await calm()

    async def usurped() -> str:
        run = app.get("x")
        await calm()
        uid = desk.store.content.ids["x"]  # type: ignore[index]
        row = await desk.store.directory.row(uid)
        assert row is not None
        await desk.store.hosts.join("other", lease_ms=10**9)  # type: ignore[arg-type]
        await desk.store.log.claim([uid], "other", expected={uid: row.epoch})  # type: ignore[arg-type]
        await run.send("n", 1)
        await asyncio.sleep(1)
        return desk.kinds("x")[-1]

    desk = Desk(app)
    desk.play(begin, crash=True)
    epochs = [desk.store.content.runs[desk.store.content.ids["x"]].epoch]  # type: ignore[index]
    assert desk.play(usurped, crash=True) == "message_awaited"
    run = desk.store.content.runs[desk.store.content.ids["x"]]  # type: ignore[index]
    assert run.epoch == epochs[0] + 2
    assert len(run.inbox) == 1


def test_8_a_task_that_is_performed_here_has_no_row() -> None:
    app = weft.App("memory://")
    rows: list[int] = []

    @app.step
    async def look() -> None:
        rows.append(len(desk.store.content.tasks))

    @app.workflow
    async def flow() -> None:
        await look()

    desk = Desk(app)
    desk.run(flow())
    assert rows == [0]


def test_13_mail_that_was_accepted_is_taken_in_before_a_run_may_end() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> list[str]:
        await ctx.sleep("10s")
        return [message.name for message in await ctx.messages(most=9, timeout=0)]

    async def scene() -> Any:
        run = await app.start(flow(), id="x")
        await calm()
        uid = desk.store.content.ids["x"]  # type: ignore[index]
        script.gate = asyncio.Event()
        await asyncio.sleep(20)
        body = c.encode(c.DeliverMessage("m1", "late", msgspec.Raw(b"1")))
        (sent,) = await desk.store.log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        assert sent.value == "accepted"
        script.gate.set()
        script.gate = None
        return await run.result()

    desk, script = flaky(app)
    desk.play(scene)
    kinds = desk.kinds("x")
    assert kinds.count("message_received") == 1
    assert kinds[-1] == "run_completed"


def test_14_a_rejection_uses_up_no_key() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> bool:
        return (await ctx.ask("q", title="?", form=dict[str, int])).approved

    async def scene() -> bool:
        run = await app.start(flow(), id="x")
        await calm()
        with pytest.raises(weft.BadValue):
            await run.decide("q", approved=True, form=[1], key="k")
        await run.decide("q", approved=True, form={"a": 1}, key="k")
        return await run.result()

    assert Desk(app).play(scene)


def test_15_mail_accepted_before_the_deadline_wins_although_nobody_looked() -> None:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context) -> str:
        return await ctx.receive("n", str, timeout="10s", default="late")

    async def scene() -> str:
        run = await app.start(flow(), id="x")
        await asyncio.sleep(5)
        uid = desk.store.content.ids["x"]  # type: ignore[index]
        body = c.encode(c.DeliverMessage("m1", "n", msgspec.Raw(b'"in time"')))
        await desk.store.log.send([Mail(id="m1", to=uid, body=body, at=desk.clock.now_ms())])
        return await run.result()

    desk = Desk(app, settings=msgspec.structs.replace(CALM, poll_seconds=1000.0))
    assert desk.play(scene) == "in time"


def test_19_a_run_whose_log_is_of_a_newer_format_is_left_alone() -> None:
    app, flow, ledger = counting()

    async def begin() -> None:
        await app.start(flow("x"), id="x", delay="1s")

    async def wait() -> None:
        await asyncio.sleep(60)

    desk = Desk(app)
    desk.play(begin)
    run = desk.store.content.runs[desk.store.content.ids["x"]]  # type: ignore[index]
    run.new = msgspec.structs.replace(run.new, format=e.FORMAT + 1)
    desk.play(wait)
    assert ledger == []
    assert run.owner is None
    run.new = msgspec.structs.replace(run.new, format=e.FORMAT)
    desk.play(wait)
    assert ledger == ["x first"]


def test_26_a_body_that_awaits_a_run_gives_up_its_slot_meanwhile() -> None:
    app = weft.App("memory://")

    @app.step
    async def inner(n: int) -> int:
        return n + 1

    @app.workflow
    async def child(n: int) -> int:
        return await inner(n)

    @app.step
    async def outer(n: int) -> int:
        return await (await app.start(child(n), id=f"child-{weft.task().key}")).result()

    @app.workflow
    async def flow() -> list[int]:
        return list(await asyncio.gather(*(outer(n) for n in range(5))))

    desk = Desk(app, settings=msgspec.structs.replace(CALM, slots=1))
    assert desk.run(flow()) == [1, 2, 3, 4, 5]


def test_27_a_log_that_cannot_be_read_is_marked_on_the_row_and_harms_no_other() -> None:
    app, flow, _ = counting()

    async def begin() -> None:
        for name in "ab":
            await app.start(flow(name), id=name)
        await calm()

    async def end() -> Any:
        await calm()
        await app.get("b").send("n", 1)
        return await app.get("b").result()

    desk = Desk(app)
    desk.play(begin, crash=True)
    broken = desk.store.content.runs[desk.store.content.ids["a"]]  # type: ignore[index]
    del broken.events[1]
    assert desk.play(end) == ["b first", 1, "b second"]
    assert broken.fault is not None
    assert broken.status == "held"


def _two_waiting(desk: Desk, app: weft.App) -> Any:
    """Runs a and b wait for "n"; what is sent to both, and what b gives."""

    async def begin() -> None:
        for name in "ab":
            await app.start("flow", {"name": name}, id=name)
        await calm()

    desk.play(begin, crash=True)
    content = desk.store.content
    return content.runs[content.ids["a"]]  # type: ignore[index]


def _waiting_app() -> weft.App:
    app = weft.App("memory://")

    @app.workflow
    async def flow(ctx: weft.Context, name: str) -> int:
        return await ctx.receive("n", int)

    return app


@pytest.mark.parametrize(
    "body", [b"{", b'{"do":"something_new"}', b'{"do":"deliver_message"}'], ids=["torn", "unknown", "incomplete"]
)
@pytest.mark.parametrize("found", ["read back", "in memory"])
def test_mail_that_cannot_be_read_stops_its_own_run_only(body: bytes, found: str) -> None:
    app = _waiting_app()
    desk = Desk(app)
    broken = _two_waiting(desk, app)

    async def end() -> int:
        if found == "in memory":
            await calm()
        mail = Mail(id="bad", to=broken.new.uid, body=body, at=Millis(1))
        await desk.store.log.send([mail])
        desk.host.wakeups.wake("mail", "runs")
        await calm()
        await app.get("b").send("n", 1)
        return await app.get("b").result()

    if found == "read back":
        broken.inbox["bad"] = Mail(id="bad", to=broken.new.uid, body=body, at=Millis(1))
        broken.mail += 1
    assert desk.play(end) == 1
    assert broken.status == "held"
    assert broken.fault is not None
    assert "cannot be read" in broken.fault


def test_an_event_of_an_unknown_kind_stops_its_own_run_only() -> None:
    app = _waiting_app()
    desk = Desk(app)
    broken = _two_waiting(desk, app)
    broken.events[-1] = msgspec.structs.replace(broken.events[-1], body=b'{"kind":"something_new"}')

    async def end() -> int:
        await calm()
        await app.get("b").send("n", 1)
        return await app.get("b").result()

    assert desk.play(end) == 1
    assert broken.fault is not None
    assert "cannot be read" in broken.fault
