import pytest
from order import Order, app, charge, mail, place, refund, release, ship

import weft
from weft.testing import World, crash_everywhere

SMALL = Order("o-1", "lamp", 4_200, "ann@example.com")
LARGE = Order("o-2", "piano", 900_000, "bob@example.com")


def test_a_small_order_needs_nobody() -> None:
    world = World(app)
    assert world.run(place(SMALL)) == "track-o-1"
    assert len(world.calls(charge)) == 1


def test_a_large_order_waits_for_a_person() -> None:
    world = World(app)
    run = world.start(place(LARGE))
    world.advance("1d")
    assert world.calls(charge) == []
    run.answer("approve", by="ann")
    assert run.result() == "track-o-2"


def test_after_two_days_without_an_answer_the_item_is_released() -> None:
    world = World(app)
    run = world.start(place(LARGE))
    world.advance("2d")
    with pytest.raises(weft.RunFailed):
        run.result()
    assert (len(world.calls(release)), len(world.calls(charge))) == (1, 0)


def test_what_cannot_be_shipped_is_refunded() -> None:
    world = World(app)
    world.fake(ship, weft.Critical("the warehouse has burned down"))
    with pytest.raises(weft.RunFailed):
        world.run(place(SMALL))
    assert [len(world.calls(step)) for step in (refund, release, mail)] == [1, 1, 0]


def test_a_crash_anywhere_never_charges_twice() -> None:
    def scenario(world: World) -> None:
        try:
            assert world.run(place(SMALL)) == "track-o-1"
        except weft.RunFailed as failed:
            assert "may have been performed" in str(failed)  # it died while the provider was asked: a person looks
        assert len(world.calls(charge)) <= 1

    assert crash_everywhere(app, scenario) >= 10
