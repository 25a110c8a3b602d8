from billing import app, bill, subscription

from weft.testing import World


def bills(world: World) -> list[int]:
    return [call.args["cents"] for call in world.calls(bill)]


def test_a_year_is_twelve_bills_and_passes_at_once() -> None:
    world = World(app)
    assert world.run(subscription("ann", months=12)) == 12 * 3_000
    assert bills(world) == [3_000] * 12


def test_a_change_after_ten_days_costs_the_difference_of_twenty() -> None:
    world = World(app)
    run = world.start(subscription("bob", months=2))
    world.advance("10d")
    run.send("change", {"plan": "team"})
    world.advance("20d")
    assert bills(world) == [3_000, 20 * 400, 15_000]
    run.send("change", {"plan": "end"})
    assert run.result() == 26_000


def test_a_process_that_dies_bills_nothing_twice() -> None:
    world = World(app)
    world.crash(at="bill", when="after")
    world.run(subscription("eve", months=3))
    assert bills(world) == [3_000] * 3
