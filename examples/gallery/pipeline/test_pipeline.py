from pipeline import app, average, clean, daily, download, load_warehouse

from weft.testing import World

GIVEN = {"source": "https://example.com/weather.csv"}


def test_the_report_is_made_from_rows_that_can_be_read() -> None:
    assert World(app).run(daily, GIVEN)["report"] == "Bonn: 14.0\nKiel: 12.0\nfrom 3 rows"


def test_only_what_the_report_needs_is_run() -> None:
    world = World(app)
    world.run(daily, GIVEN)
    assert [len(world.calls(step)) for step in (download, clean, average, load_warehouse)] == [1, 1, 1, 0]


def test_rows_that_are_given_are_not_downloaded() -> None:
    world = World(app)
    facts = world.run(daily, {"rows": [{"city": "Kiel", "celsius": 1.0}]})
    assert facts["report"] == "Kiel: 1.0\nfrom 1 rows"
    assert world.calls(download) == []
