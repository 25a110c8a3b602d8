"""``weft check --live``: open runs against the app file as it is now."""

from pathlib import Path

from tests.cli.conftest import Weft
from tests.cli.shop import APP


def test_open_runs_are_checked_against_the_file(waiting: Weft, folder: Path) -> None:
    said = waiting("check", "app.py", "--live")

    assert (said.code, said.err) == (0, "")
    assert "1 open runs checked" in said.out
    assert "fits" in said.out
    assert "What a run would do next cannot be seen." in said.out
    (folder / "later.py").write_text(APP.replace('await ctx.receive("quote", int)', 'await charge("a")'))
    found = waiting("check", "later.py", "--live", "--json", "--workflow", "patient")
    assert found.code == 0
    (group,) = found.json()["groups"]  # type: ignore[index]
    assert (group["verdict"], group["place"]) == ("unvisited", "quote")


def test_what_is_not_hosted_fails_the_check(waiting: Weft, folder: Path) -> None:
    (folder / "later.py").write_text(APP.replace("async def patient(", "async def impatient("))

    said = waiting("check", "--app", "later.py", "--live", "--sample", "1")

    assert said.code == 1
    assert "not hosted" in said.out
    assert "There is no patient in version 1 here." in said.out


def test_its_options_are_for_live_checks_only(weft: Weft) -> None:
    assert "only with --live" in weft("check", "app.py", "--sample", "3").err
    assert "is not a number" in weft("check", "app.py", "--live", "--sample", "x").err
    assert "name a graph document" in weft("check").err
    assert "needs one app" in weft("check", "--live").err
