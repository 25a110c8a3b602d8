from report import app, nightly, sales_of, send

from weft.testing import World


def test_three_nights_give_three_mails() -> None:
    world = World(app)
    world.settle()
    world.advance("3d")
    subjects = [call.args["subject"] for call in world.calls(send)]
    assert len(subjects) == 3
    assert len(set(subjects)) == 3


def test_a_service_that_is_away_for_a_while_delays_the_report_only() -> None:
    world = World(app)
    world.fake(sales_of, ConnectionError(), ConnectionError(), 7, 8, 9)
    assert set(world.run(nightly()).split()) >= {"7", "8", "9"}
