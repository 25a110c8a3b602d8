"""A recorded run is a regression test for the code that made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.testing import World, export_events, replay


def shop(*, steps: tuple[str, ...], result: str = "done", big: bool = False) -> weft.App:
    """An app whose workflow calls these steps in this order."""
    app = weft.App("memory://")

    @app.step
    async def pay(n: int) -> str:
        return "p" * (50_000 if big else 1)

    @app.step
    async def ship(n: int) -> str:
        return "s"

    @app.workflow
    async def order(ctx: weft.Context, n: int) -> str:
        for name in steps:
            await {"pay": pay, "ship": ship}[name.rstrip("+")](n + name.count("+"))
        await ctx.sleep("1d")
        await ctx.receive("go")
        return result

    return app


OLD = ("pay", "ship")


def recorded(tmp_path: Path, app: weft.App, *, end: bool = True) -> Path:
    world = World(app)
    run = world.start(app.registered.workflow_named("order")(1), id="order-1")
    world.advance("2d")
    if end:
        run.send("go")
        run.result()
    path = tmp_path / "order.events.json"
    path.write_text(json.dumps(export_events(run)), "utf-8")
    return path


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("big", [True, False])
def test_the_code_that_made_it_replays_it(tmp_path: Path, end: bool, big: bool) -> None:
    app = shop(steps=OLD, big=big)
    replay(app, recorded(tmp_path, app, end=end))


@pytest.mark.parametrize(
    ("steps", "location"),
    [(("ship", "pay"), ""), (("pay",), ""), (("pay", "ship", "ship"), "ship#2"), (("pay", "ship+"), "ship")],
)
def test_a_change_that_the_record_does_not_fit_is_found(tmp_path: Path, steps: tuple[str, ...], location: str) -> None:
    path = recorded(tmp_path, shop(steps=OLD))
    changed = shop(steps=steps)
    if steps in (("ship", "pay"), ("pay",)):
        replay(
            changed, path
        )  # another order of different steps, and a step that is no longer called, are no divergence
        return
    with pytest.raises(weft.Diverged) as found:
        replay(changed, path)
    assert found.value.location == location


def test_another_result_is_found(tmp_path: Path) -> None:
    path = recorded(tmp_path, shop(steps=OLD))
    with pytest.raises(weft.Diverged, match="its end"):
        replay(shop(steps=OLD, result="other"), path)


def test_an_end_that_the_record_does_not_have_is_found(tmp_path: Path) -> None:
    path = recorded(tmp_path, shop(steps=OLD), end=False)
    app = shop(steps=OLD)

    @app.workflow(name="order", version="2")
    async def shorter(n: int) -> str:
        return "done"

    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    data["version"] = "2"
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(weft.Diverged):
        replay(app, path)


def test_what_is_no_recorded_run_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(weft.UsageError, match="cannot be read"):
        replay(shop(steps=OLD), path)
    path.write_text("{}", "utf-8")
    with pytest.raises(weft.UsageError, match="cannot be read"):
        replay(shop(steps=OLD), path)
    data = json.loads(recorded(tmp_path, shop(steps=OLD)).read_text("utf-8"))
    path.write_text(json.dumps({**data, "weft": "events/9"}), "utf-8")
    with pytest.raises(weft.UsageError, match="events/9"):
        replay(shop(steps=OLD), path)
    path.write_text(json.dumps({**data, "workflow": "other"}), "utf-8")
    with pytest.raises(weft.UnknownWorkflow, match="other"):
        replay(shop(steps=OLD), path)


def test_the_format_is_plain(tmp_path: Path) -> None:
    data = json.loads(recorded(tmp_path, shop(steps=OLD, big=True)).read_text("utf-8"))
    assert (data["weft"], data["run"], data["workflow"], data["version"]) == ("events/1", "order-1", "order", "1")
    assert [event["seq"] for event in data["events"]] == list(range(1, len(data["events"]) + 1))
    assert data["events"][0]["event"]["kind"] == "run_started"
    assert list(data["blobs"].values()) == ['"' + "p" * 50_000 + '"']
