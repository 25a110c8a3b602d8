import weft
from a01_support import app, refund, support
from weft.testing import World, calls, crash_everywhere

SCRIPT = (calls(find_order={"order_id": "o-1"}), calls(refund={"order_id": "o-1", "cents": 4200}), "Done, it is on its way.")

def scenario(world: World) -> None:
    world.fake_model("fast", *SCRIPT)
    run = world.start(support("o-1 was cold"))
    run.answer("turn/~1/tools/0/approve", by="fin")
    try:
        assert run.result().output == "Done, it is on its way."
    except weft.RunFailed as lost:                                # it died with the refund in its hands: nobody repeats it
        assert lost.failure.code == "step.outcome_unknown"
    assert len(world.calls(refund)) <= 1

def test_money_leaves_once_whatever_crashes() -> None:
    assert crash_everywhere(app, scenario) > 10

def test_a_no_is_told_to_the_model() -> None:
    world = World(app)
    world.fake_model("fast", SCRIPT[1], "I am sorry.")
    run = world.start(support("money!"))
    run.answer("turn/~0/tools/0/approve", approved=False, reason="too late", by="fin")
    assert run.result().stopped == "done" and world.calls(refund) == []
    assert "too late" in world.model_calls("fast")[1].messages[-1].text
