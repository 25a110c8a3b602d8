"""What a user can do in a world."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.testing.shop import Receipt, app, charge, doomed, family, order, pack, refund, signed, threaded
from tests.work import lines_of
from weft.testing import World, crash_everywhere


def test_a_run_skips_its_own_time() -> None:
    world = World(app)
    assert world.run(order("o-1")) == "real-o-1 box-o-1!"


def test_the_apps_own_store_is_never_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    World(app).run(order("o-1"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(weft.NotRunning):
        _ = app.service


def test_time_moves_only_when_it_is_told_to() -> None:
    world = World(app)
    run = world.start(order("o-1"))
    world.advance("2d23h")
    assert run.status == "running"
    assert [(waiting.kind, waiting.location) for waiting in run.waiting_for()] == [("sleep", "sleep")]
    world.advance("1h")
    assert run.status == "completed"
    assert run.events[0].kind == "run_started"
    assert run.events[-1].kind == "run_completed"


def test_two_years_cost_nothing() -> None:
    world = World(app)
    run = world.start(signed("o-1"))
    assert lines_of(lambda: world.advance("700d")) < 100_000
    assert run.status == "running"


def test_messages_and_answers() -> None:
    world = World(app)
    run = world.start(signed("o-1"))
    run.send("note", "hello")
    assert run.waiting_for()[0].kind == "ask"
    run.answer("sign", approved=True, by="ann")
    assert run.result() == "hello True ann"
    with pytest.raises(weft.RunFinished):
        run.send("note", "again")


def test_a_message_may_come_before_it_is_waited_for() -> None:
    world = World(app)
    run = world.start(signed("o-1"))
    run.send("note", "early")
    run.answer("sign", approved=False, by="bob")
    assert run.result() == "early False bob"


def test_a_question_that_nobody_answers_runs_out() -> None:
    world = World(app)
    run = world.start(signed("o-1"))
    run.send("note", "hello")
    with pytest.raises(weft.RunFailed, match="did not come in time"):
        run.result()


def test_a_run_that_waits_for_people_says_so_instead_of_hanging() -> None:
    world = World(app)
    with pytest.raises(weft.UsageError, match="signed-1 is running"):
        world.run(signed("o-1"))


def test_cancelling() -> None:
    world = World(app)
    run = world.start(order("o-1"))
    world.settle()
    run.cancel("enough")
    with pytest.raises(weft.RunCancelled, match="enough"):
        run.result()
    assert len(world.calls(refund)) == 1


def test_the_same_id_is_the_same_run() -> None:
    world = World(app)
    first = world.start(order("o-1"), id="x")
    assert world.start(order("o-1"), id="x").id == first.id == "x"
    with pytest.raises(weft.IdTaken):
        world.start(order("o-2"), id="x")


def test_a_fake_per_attempt_and_the_last_repeats() -> None:
    world = World(app)
    world.fake(charge, TimeoutError(), ValueError("odd"), Receipt("fake", 1))
    assert world.run(order("o-1")) == "fake box-o-1!"
    assert world.run(order("o-2")) == "fake box-o-2!"
    assert [(call.args["order"], call.attempt) for call in world.calls(charge)] == [
        ("o-1", 1),
        ("o-1", 2),
        ("o-1", 3),
        ("o-2", 1),
    ]
    assert len({call.key for call in world.calls(charge)}) == 2


def test_fakes_may_be_functions_classes_of_errors_and_inline_steps() -> None:
    world = World(app)

    async def later(order: str, cents: int) -> Receipt:
        return Receipt(f"later-{order}", cents)

    world.fake(charge, later)
    world.fake("pack", lambda order: order.upper())
    world.fake("label", RuntimeError, "sticker")
    assert world.run(order("o-1")) == "later-o-1 sticker"
    assert [call.attempt for call in world.calls("label")] == [1, 2]


def test_a_fake_must_fit_the_type_of_the_step() -> None:
    world = World(app)
    world.fake(pack, 7)
    with pytest.raises(weft.RunFailed, match="the fake of pack returned"):
        world.run(order("o-1"))
    with pytest.raises(weft.UsageError, match="has no results"):
        world.fake(pack)
    with pytest.raises(weft.UsageError, match="is not a step"):
        world.fake(order, 1)


def test_an_undo_is_called_with_what_its_step_gave() -> None:
    world = World(app)
    with pytest.raises(weft.RunFailed):
        world.run(doomed("o-1"))
    (call,) = world.calls(refund)
    assert call.args == {"result": Receipt("real-o-1", 1)}
    assert call.key.endswith("charge!undo")


def test_a_crash_before_the_result_is_recorded_performs_the_step_again_under_its_key() -> None:
    world = World(app)
    world.crash(at=charge, when="before", times=2)
    assert world.run(order("o-1")) == "real-o-1 box-o-1!"
    assert [call.attempt for call in world.calls(charge)] == [1, 1, 1]
    assert len({call.key for call in world.calls(charge)}) == 1
    assert not world.missed_crashes()


def test_a_crash_after_the_result_is_recorded_does_not() -> None:
    world = World(app)
    world.crash(at="charge", when="after")
    world.crash(at="label", when="after")
    assert world.run(order("o-1")) == "real-o-1 box-o-1!"
    assert len(world.calls(charge)) == len(world.calls("label")) == 1
    assert not world.missed_crashes()


def test_a_planned_crash_that_never_comes_is_known() -> None:
    world = World(app)
    world.crash(at="chrage")
    world.run(order("o-1"))
    assert world.missed_crashes() == ["after chrage"]
    with pytest.raises(weft.UsageError, match="before, after"):
        world.crash(at=charge, when="while")  # type: ignore[arg-type]


def test_the_same_fake_answers_the_same_attempt_after_a_crash() -> None:
    world = World(app)
    world.fake(charge, Receipt("first", 1), Receipt("second", 2))
    world.crash(at=charge, when="before")
    assert world.run(order("o-1")).startswith("first")


def test_a_restart_loses_memory_and_nothing_else() -> None:
    world = World(app)
    run = world.start(signed("o-1"))
    run.send("note", "kept")
    world.restart()
    assert run.status == "running"
    run.answer("sign", approved=True, by="ann")
    world.restart()
    assert run.result() == "kept True ann"


def test_children_live_in_the_same_world() -> None:
    world = World(app)
    world.crash(at="charge", when="before")
    assert world.run(family("o-1")) == "real-o-1 box-o-1!"


def test_worlds_do_not_disturb_each_other() -> None:
    one, other = World(app, seed=1), World(app, seed=2)
    one.fake(charge, Receipt("one", 1))
    first, second = one.start(order("o"), id="x"), other.start(order("o"), id="x")
    one.advance("1d")
    assert first.result().startswith("one")
    assert second.status == "running"
    assert second.result().startswith("real")
    assert other.calls("label")


def test_the_same_seed_is_the_same_world() -> None:
    def told(seed: int) -> list[object]:
        world = World(app, seed)
        world.fake(charge, TimeoutError(), Receipt("r", 1))
        run = world.start(order("o-1"))
        run.result()
        return [run.events, world.calls(charge), world.writes]

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_a_step_that_needs_a_thread_of_its_own_is_told_to_be_faked() -> None:
    world = World(app)
    with pytest.raises(weft.RunFailed, match=r"world\.fake"):
        world.run(threaded("o-1"))


def test_a_scenario_survives_a_crash_at_every_write() -> None:
    def scenario(world: World) -> None:
        run = world.start(order("o-1"))
        assert run.result() == "real-o-1 box-o-1!"
        assert len({call.key for call in world.calls(charge)}) == 1

    assert crash_everywhere(app, scenario, seeds=2) > 15


def test_messages_answers_and_children_survive_a_crash_at_every_write() -> None:
    def scenario(world: World) -> None:
        run = world.start(signed("o-1"))
        run.send("note", "hello")
        run.answer("sign", approved=True, by="ann")
        assert run.result() == "hello True ann"
        assert world.run(family("o-1")) == "real-o-1 box-o-1!"

    assert crash_everywhere(app, scenario) > 15


def test_the_boundary_that_fails_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def scenario(world: World) -> None:
        world.run(order("o-1"))
        assert len(world.calls(charge)) == 1  # too much to ask for: a crash may come before the result is recorded

    with pytest.raises(AssertionError):
        crash_everywhere(app, scenario)
    assert "seed 0: fails with a crash before write" in capsys.readouterr().out
