from leads import app, enrich, leads, score, to_newsletter

from weft.testing import World


def test_it_looks_twice_before_it_is_sure() -> None:
    world = World(app)
    assert world.run(leads, {"company": "Acme"}) == {"result": "Acme goes to sales with 40 points"}
    assert len(world.calls(enrich)) == 2


def test_small_companies_get_the_newsletter() -> None:
    world = World(app)
    world.fake(score, {"points": 3, "confidence": 1.0})
    assert world.run(leads, {"company": "Tiny"}) == {"result": "Tiny gets the newsletter"}
    assert len(world.calls(to_newsletter)) == 1


def test_whoever_stays_unclear_is_scored_by_a_person() -> None:
    world = World(app)
    world.fake(score, *[{"points": 3, "confidence": 0.1}] * 3)
    run = world.start(leads, {"company": "Odd"})
    run.answer("by_hand", by="ann")
    assert run.result() == {"result": "a person decided"}
