"""The table of the page "Changing workflow code": every row is played."""

import asyncio
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.code.test_changed_code import Build, Changed, code, make_step

PAGE = Path(__file__).parents[2] / "docs" / "changing-code.md"


def of(*calls: str, after: tuple[str, ...] = ("ship",)) -> Build:
    """Code that calls these steps, waits for "go" and calls the rest."""

    async def body(ctx: weft.Context, s: Any) -> Any:
        for call in calls:
            await getattr(s, call)()
        await ctx.receive("go")
        for call in after:
            await getattr(s, call)()

    return code(body)


def grouped(name: str, how: str, step: str = "charge") -> Build:
    async def body(ctx: weft.Context, s: Any) -> Any:
        async def turn(n: int) -> weft.Turn[int, None]:
            await getattr(s, step)()
            await ctx.receive("go", timeout="1ms", default=None)
            return weft.again(n + 1) if n < 1 else weft.done(None)

        act = getattr(s, step)
        if how == "join":
            await ctx.join(name, {"a": act(), "b": s.look()})
        elif how == "branches":
            await ctx.join(name, {"c": act(), "b": s.look()})
        elif how == "map":
            await ctx.map(name, act, [1, 2])
        elif how == "race":
            await ctx.race(name, {"a": act()})
        elif how == "gather":
            await asyncio.gather(act(), s.look())
        else:
            await act()
            await s.look()
        await ctx.receive("go")
        await s.ship()

    return code(body)


def mapped(*items: int, after: str = "") -> Build:
    async def body(ctx: weft.Context, s: Any) -> Any:
        await ctx.map("pages", s.charge, items)
        if after:
            await getattr(s, after)()
        await ctx.receive("go")
        await s.ship()

    return code(body)


def joined(*branches: str) -> Build:
    async def body(ctx: weft.Context, s: Any) -> Any:
        await ctx.join("both", {branch: s.look() for branch in branches})
        await s.charge()
        await ctx.receive("go")

    return code(body)


def child(name: str) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        @app.workflow(name=name)
        async def inner() -> None:
            acts.append(name)

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await inner()
            await ctx.receive("go")

    return build


def typed(kind: Any, value: Any) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        async def look() -> Any:
            return value

        look.__annotations__["return"] = kind
        step = app.step(look)

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await step()
            await ctx.receive("go")

    return build


def with_parameters(text: str) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        names: dict[str, Any] = {"weft": weft, "acts": acts}
        exec(f"async def flow(ctx: weft.Context{text}):\n    await ctx.receive('go')\n    acts.append('end')\n", names)
        app.workflow(names["flow"])

    return build


def with_step(parameters: str, arguments: str) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        names: dict[str, Any] = {"weft": weft, "acts": acts}
        exec(f"async def charge({parameters}):\n    acts.append('charge')\n", names)
        names["charge"] = app.step(names["charge"])
        body = f"await charge({arguments})\n    await ctx.receive('go')\n    acts.append('end')"
        exec(f"async def flow(ctx: weft.Context):\n    {body}\n", names)
        app.workflow(names["flow"])

    return build


def waiting(text: str) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        names: dict[str, Any] = {"weft": weft, "charge": make_step(app, acts, "charge")}
        exec(f"async def flow(ctx: weft.Context):\n    {text}\n", names)
        app.workflow(names["flow"])

    return build


def version(text: str) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        @app.workflow(version=text)
        async def flow(ctx: weft.Context) -> None:
            await ctx.receive("go")

    return build


def policy(**options: Any) -> Build:
    def build(app: weft.App, acts: list[str]) -> None:
        step = make_step(app, acts, "charge", **options)

        @app.workflow
        async def flow(ctx: weft.Context) -> None:
            await step()
            await ctx.receive("go")

    return build


PURE = {"charge": {"effect": "pure"}}


async def _renamed_pure(ctx: weft.Context, s: Any) -> Any:
    await s.charge_card()
    await ctx.receive("go")


async def _pure(ctx: weft.Context, s: Any) -> Any:
    await s.charge()
    await ctx.receive("go")


async def _other_input(ctx: weft.Context, s: Any) -> Any:
    await s.charge(7)
    await ctx.receive("go")


async def _swapped(ctx: weft.Context, s: Any) -> Any:
    await s.charge(2)
    await s.charge(1)
    await ctx.receive("go")


async def _in_order(ctx: weft.Context, s: Any) -> Any:
    await s.charge(1)
    await s.charge(2)
    await ctx.receive("go")


async def _removed(ctx: weft.Context, s: Any) -> Any:
    await ctx.removed("charge", "step")
    await ctx.receive("go")
    await s.ship()


async def _versioned(ctx: weft.Context, s: Any) -> Any:
    if await ctx.version("check", 2) >= 2:
        await s.check()
    await s.charge()
    await ctx.receive("go")
    await s.ship()


NEEDS_N = with_parameters(", n: int")
ROWS: dict[str, tuple[Build, Build, str, list[str]]] = {
    "change the body of a step": (typed(int, 1), typed(int, 2), "completed", []),
    "change code that the run has not reached": (of("charge"), of("charge", after=("check",)), "completed", ["check"]),
    "change the order of different steps": (of("look", "charge"), of("charge", "look"), "completed", ["ship"]),
    "change the order of calls of one step": (code(_in_order), code(_swapped), "completed", []),
    "change the arguments of a recorded step": (of("charge"), code(_other_input), "held", []),
    "change the retries, timeout or queue of a step": (policy(), policy(retries=0, timeout="1h"), "completed", []),
    "change the type of a result; the recorded value fits": (typed(int, 1), typed(float, 1.0), "completed", []),
    "change the type of a result; the recorded value does not fit": (typed(int, 1), typed(str, "1"), "held", []),
    "rename a step": (of("charge"), of("charge_card"), "held", []),
    "rename a pure step": (code(_pure, **PURE), code(_renamed_pure, **PURE), "completed", ["charge_card"]),
    "rename a child workflow": (child("inner"), child("other"), "held", []),
    "rename a `join`, `race`, `map` or `loop`": (grouped("both", "join"), grouped("pair", "join"), "held", []),
    "add an item to a `map`; no recorded step comes after it": (
        mapped(1, 2),
        mapped(1, 2, 3),
        "completed",
        ["charge", "ship"],
    ),
    "add an item to a `map` with a recorded step after it": (
        mapped(1, 2, after="look"),
        mapped(1, 2, 3, after="look"),
        "held",
        [],
    ),
    "remove an item of a `map` that has a recorded step": (mapped(1, 2), mapped(1), "held", []),
    "replace an item of a `map`": (mapped(1, 2), mapped(1, 3), "held", []),
    "rename a branch of a `join` or `race`": (grouped("both", "join"), grouped("both", "branches"), "held", []),
    "add a branch to a `join` with a recorded step after it": (
        joined("a", "b"),
        joined("a", "b", "c"),
        "held",
        [],
    ),
    "move a step into or out of a `join` or an asyncio task": (
        grouped("both", "plain"),
        grouped("both", "gather"),
        "held",
        [],
    ),
    "remove a step; no new work comes after it": (
        of("look", "charge", after=()),
        of("charge", after=()),
        "completed",
        [],
    ),
    "remove a step; new work comes after it": (of("look", "charge"), of("charge"), "held", []),
    "remove a step and write `ctx.removed`": (of("charge"), code(_removed), "completed", ["ship"]),
    "insert a step, child or question before a recorded step": (of("charge"), of("check", "charge"), "held", []),
    "insert a step behind `ctx.version`": (of("charge"), code(_versioned), "completed", ["ship"]),
    "insert a step after everything recorded": (of("charge"), of("charge", "check"), "completed", ["check", "ship"]),
    "insert a `sleep` or `receive`": (
        waiting("await charge(); await ctx.receive('go')"),
        waiting("await ctx.sleep('1s'); await charge(); await ctx.receive('go')"),
        "completed",
        [],
    ),
    "change a duration or timeout that has begun": (
        waiting("await ctx.receive('go', timeout='1ms', default=None); await ctx.receive('go')"),
        waiting("await ctx.receive('go', timeout='9h', default=None); await ctx.receive('go')"),
        "completed",
        [],
    ),
    "put another kind of operation under a recorded name": (
        waiting("await charge(); await ctx.receive('go')"),
        waiting("await ctx.sleep('1s', name='charge'); await ctx.receive('go')"),
        "held",
        [],
    ),
    "add a parameter with a default": (with_parameters(""), with_parameters(", n: int = 1"), "completed", ["end"]),
    "add a parameter without a default to a workflow": (with_parameters(""), NEEDS_N, "held", []),
    "add a parameter without a default to a recorded step, and pass it": (
        with_step("a: int", "1"),
        with_step("a: int, b: int", "1, 2"),
        "held",
        [],
    ),
    "remove the default of a parameter": (with_parameters(", n: int = 1"), NEEDS_N, "completed", ["end"]),
    "declare a new version and keep the old one": (version("1"), version("1"), "completed", []),
    "declare a new version and delete the old one": (version("1"), version("2"), "running", []),
}


@pytest.mark.parametrize("change", ROWS)
def test_a_row_of_the_table(change: str) -> None:
    old, new, outcome, performed = ROWS[change]
    run = Changed(old, new)
    assert (run.outcome, run.anew) == (outcome, performed)


@pytest.mark.parametrize("how", ["join", "race", "map"])
def test_renaming_any_operation_is_noticed(how: str) -> None:
    run = Changed(grouped("both", how), grouped("pair", how))
    assert (run.outcome, run.anew) == ("held", [])
    assert f'ctx.removed("both", "{how}")' in run.held()


@pytest.mark.parametrize("items", [(1,), (1, 2, 3), ()])
def test_another_number_of_items_is_blamed_on_the_map(items: tuple[int, ...]) -> None:
    run = Changed(mapped(1, 2, after="look"), mapped(*items, after="look"))

    assert run.outcome == "held"
    assert f"at `pages` it has a map over 2 items, the code now asks for one over {len(items)}" in run.held()


def test_another_item_is_blamed_on_the_map() -> None:
    run = Changed(mapped(1, 2), mapped(1, 3))

    assert run.outcome == "held"
    assert "item 1 of the map `pages`, which may go over other items now" in run.held()


def test_a_renamed_loop_is_noticed() -> None:
    def loop(name: str) -> Build:
        async def body(ctx: weft.Context, s: Any) -> Any:
            async def turn(n: int) -> weft.Turn[int, None]:
                await s.charge()
                await ctx.receive("go")
                return weft.done(None)

            await ctx.loop(name, turn, state=0)

        return code(body)

    run = Changed(loop("rounds"), loop("turns"))
    assert (run.outcome, run.anew) == ("held", [])


def test_a_question_is_new_work() -> None:
    def build(*, question: bool) -> Build:
        async def body(ctx: weft.Context, s: Any) -> Any:
            if question:
                await ctx.ask("sure", title="Sure?")
            await s.charge()
            await ctx.receive("go")

        return code(body)

    assert Changed(build(question=False), build(question=True)).outcome == "held"


def test_the_hold_names_the_workflow_the_new_parameter_and_what_to_do() -> None:
    run = Changed(with_parameters(""), NEEDS_N)
    assert run.held() == (
        "run stopped for you: the workflow flow no longer takes the input this run started with: flow() needs n. "
        "Nothing was undone. Give n a default. Then: weft resume run. "
        "Or start again: weft cancel run, then weft start flow --input FILE"
    )
    assert run.resumed(with_parameters(", n: int = 1")) == ["end"]


def test_a_recorded_input_of_another_type_is_named_in_the_hold() -> None:
    run = Changed(with_parameters(", n: int = 3"), with_parameters(", n: str"))
    assert "flow(n=3): n must be a string, got an integer. Nothing was undone." in run.held()
    assert run.resumed(with_parameters(", n: int | str")) == ["end"]


def test_the_hold_names_the_new_parameter_of_a_step_and_what_to_do() -> None:
    run = Changed(with_step("a: int", "1"), with_step("a: int, b: int", "1, 2"))
    assert "at `charge` it has a recorded result for (a=1), the code now asks for (a=1, b=2)." in run.held()
    assert "New parameter: give b a default and leave it out here, then weft resume run." in run.held()
    assert run.resumed(with_step("a: int, b: int = 2", "1")) == ["end"]


def test_a_removed_step_is_logged_when_the_run_ends(caplog: pytest.LogCaptureFixture) -> None:
    old, new, *_ = ROWS["remove a step; no new work comes after it"]
    with caplog.at_level(logging.WARNING, "weft"):
        run = Changed(old, new)

    (said,) = caplog.messages
    assert said == "weft: run ends, and replay no longer reaches the recorded look"
    assert run.outcome == "completed"


def test_an_inserted_sleep_is_slept_at_its_place() -> None:
    old, new, *_ = ROWS["insert a `sleep` or `receive`"]
    kinds = Changed(old, new).desk.kinds()

    assert kinds.index("task_succeeded") < kinds.index("timer_set") < kinds.index("timer_fired")
    assert kinds.count("task_succeeded") == 1


OUTCOMES = {"completed": "continues", "held": "held", "running": "waits for a host"}
# Rows that promise more than that the run continues; the tests above hold them to it.
WORDS = {
    "remove a step; no new work comes after it": "continues; the host logs it when the run ends",
    "insert a `sleep` or `receive`": "continues: the run waits at that place",
}


def test_the_table_of_the_page_has_these_rows_and_outcomes() -> None:
    lines = PAGE.read_text().partition("| change |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.strip("|").split(" | ") for line in lines if line.startswith("|")]
    table = {cell[0].strip(): cell[1].strip() for cell in cells}
    proved = {"change the default of a parameter"}
    assert table.keys() - proved == ROWS.keys()
    wrong = [change for change, row in ROWS.items() if not re.match(rf"{OUTCOMES[row[2]]}\b", table[change])]
    assert wrong == []
    assert {change: table[change] for change in WORDS} == WORDS
