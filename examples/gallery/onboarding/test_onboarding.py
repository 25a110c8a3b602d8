import pytest
from onboarding import Person, app, close_account, mail, onboarding

import weft
from weft.testing import World

ANN = Person("Ann", "ann@example.com", "lead")


def test_ninety_days_pass_and_the_manager_agrees() -> None:
    world = World(app)
    run = world.start(onboarding(ANN))
    world.advance("90d")
    assert [call.args["text"] for call in world.calls(mail)] == ["welcome", *(f"how was week {n}?" for n in range(1, 5))]
    run.answer("probation", by="lead")
    assert run.result() == "Ann stays"


def test_a_manager_who_says_no_closes_the_account() -> None:
    world = World(app)
    run = world.start(onboarding(ANN))
    world.advance("90d")
    run.answer("probation", approved=False, by="lead", reason="not a match")
    with pytest.raises(weft.RunFailed, match="not a match"):
        run.result()
    assert len(world.calls(close_account)) == 1


def test_a_manager_who_forgets_agrees_after_two_weeks_although_hosts_die_in_between() -> None:
    world = World(app)
    run = world.start(onboarding(ANN))
    for _ in range(15):
        world.advance("7d")
        world.restart()
    assert run.result() == "Ann stays"
