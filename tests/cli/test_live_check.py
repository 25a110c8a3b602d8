"""``weft check --live``: open runs against the app file as it is now."""

from pathlib import Path

import msgspec

from tests.cli.conftest import Weft
from tests.cli.shop import APP


def test_open_runs_are_checked_against_the_file(waiting: Weft, folder: Path) -> None:
    said = waiting("check", "app.py", "--live")

    assert (said.code, said.err) == (0, "")
    assert "1 open run checked" in said.out
    assert "fits" in said.out
    assert "What a run would do next cannot be seen." in said.out
    (folder / "later.py").write_text(APP.replace('await ctx.receive("quote", int)', 'await charge("a")'))
    found = waiting("check", "later.py", "--live", "--json", "--workflow", "patient")
    assert found.code == 0
    (group,) = found.json()["groups"]  # type: ignore[index]
    assert (group["verdict"], group["place"]) == ("unvisited", "quote")


def test_a_run_that_would_stop_is_named_once(waiting: Weft, folder: Path) -> None:
    (folder / "other.py").write_text(
        APP.replace('await ctx.receive("quote", int)', 'int(await ctx.ask("quote", title="?"))')
    )

    said = waiting("check", "other.py", "--live")

    assert said.code == 1
    assert "\np-1 stopped for you: at `quote`" in said.out


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


def test_a_version_is_tried_and_bundles_are_kept_for_replay(waiting: Weft, folder: Path) -> None:
    (folder / "later.py").write_text(
        APP
        + """

@app.workflow(name="patient", version="2")
async def patient_2(ctx: weft.Context, who: str = "you") -> str:
    return str(await ctx.ask("quote", title="How much?"))
"""
    )
    words = ("check", "later.py", "--live", "--workflow", "patient", "--to", "2")

    said = waiting(*words, "--save", "live")

    assert said.code == 1
    assert "diverges" in said.out
    assert "weft fork p-1 --before quote --to 2" in " ".join(said.out.split())
    assert "it has a receive, and the code asks for an ask" in " ".join(said.out.split())
    bundle = "live/patient-1-diverges-quote.zip"
    assert f"p-1 is in {bundle}" in said.out
    assert waiting("replay", bundle, "--app", "later.py").code == 0
    (folder / "other.py").write_text(APP.replace('await ctx.receive("quote", int)', 'int(await ctx.ask("quote"))'))
    assert waiting("replay", bundle, "--app", "other.py").code == 1
    (folder / "patch.yaml").write_text("to: '2'")
    (group,) = msgspec.json.decode(waiting(*words[:-1], "patch.yaml", "--json").out)["groups"]
    assert group["verdict"] == "diverges"
    assert "Name the workflow" in waiting("check", "later.py", "--live", "--to", "2").err
    assert "only with --live" in waiting("check", "later.py", "--replan").err
