"""What a newcomer does wrong in the first minutes, and what Weft says to it: what happened, where, what to do."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft

app = weft.App("memory://")


class CardDeclined(Exception):
    pass


class Session:
    pass


@app.step(retries=weft.Retry(4, delay="1ms"))
def charge(order_id: str, cents: int = 4200) -> str:
    if cents < 0:
        raise CardDeclined(order_id)
    return order_id


@app.step
def open_session() -> Any:
    return {"receipt": {"session": Session()}}


@app.workflow
async def order(ctx: weft.Context, order_id: str, cents: int = 4200) -> str:
    return await charge(order_id, cents)


@app.workflow
async def forgetful(ctx: weft.Context) -> None:
    charge("o-1")  # type: ignore[unused-coroutine]
    order("o-1")  # type: ignore[unused-coroutine]


@app.workflow
async def sleepy(ctx: weft.Context) -> None:
    await asyncio.sleep(3600)


@app.workflow
async def hourly(ctx: weft.Context) -> None:
    await ctx.sleep("1hour")


@app.workflow
async def storing(ctx: weft.Context) -> None:
    await open_session()


def line_of(workflow: weft.Workflow[..., Any], text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    first = workflow.fn.__code__.co_firstlineno
    return next(number for number, line in enumerate(lines, 1) if number > first and text in line)


def said(error: type[BaseException], wrong: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        wrong()
    return str(caught.value)


def test_a_forgotten_await_names_the_step_and_the_workflow() -> None:
    with pytest.warns(RuntimeWarning) as warned:
        app.run(forgetful())
    texts = [str(warning.message) for warning in warned]
    assert "coroutine 'charge' was never awaited" in texts
    assert "coroutine 'order' was never awaited" in texts


def test_starting_where_nothing_is_hosted() -> None:
    async def start() -> None:
        await app.start(order("o-1"))

    text = said(weft.NotRunning, lambda: asyncio.run(start()))
    assert text == (
        "The engine is not running here, so this run would never move. Host it: `async with app: ...`, "
        "FastAPI(lifespan=app.lifespan) or app.run(...). To talk to an engine elsewhere: weft.Client(url)."
    )


def test_run_inside_a_running_loop() -> None:
    async def notebook() -> str:
        return app.run(order("o-1"))

    text = said(weft.LoopRunning, lambda: asyncio.run(notebook()))
    assert text == (
        "app.run() starts its own event loop and one is already running (Jupyter, FastAPI?). "
        "Write: handle = await app.start(order(...)); await handle.result()"
    )


def test_awaiting_what_cannot_be_recorded_names_the_line() -> None:
    text = said(weft.ForeignAwait, lambda: app.run(sleepy()))
    line = line_of(sleepy, "asyncio.sleep")
    assert text == (
        f"sleepy waits at test_first_minute.py:{line} for something Weft cannot record: asyncio.sleep(3600). "
        'After a restart it would wait again. Write: await ctx.sleep("1h"); other I/O belongs in a step.'
    )


def test_returning_what_cannot_be_stored_names_the_field() -> None:
    text = said(weft.RunFailed, lambda: app.run(storing()))
    assert "open_session returned a Session (field `receipt.session`), which cannot be stored" in text
    assert "Steps take and return builtins, dataclasses, pydantic or msgspec types." in text


def test_a_wrong_argument_starts_nothing() -> None:
    text = said(weft.BadValue, lambda: app.run(order(17)))  # type: ignore[arg-type]
    assert text == "order(order_id=17): order_id must be a string, got an integer. Nothing was started."


def test_a_wrong_duration_says_how_to_write_one() -> None:
    text = said(weft.RunFailed, lambda: app.run(hourly()))
    assert f'"1hour" is not a duration at test_first_minute.py:{line_of(hourly, "1hour")}.' in text
    assert 'Write "1h", "30s", "2d", "1h30m", timedelta(hours=1) or seconds as a number.' in text


def test_a_step_that_fails_for_good_says_how_often_and_where() -> None:
    text = said(weft.RunFailed, lambda: app.run(order("o-1", -1), id="order-o-1"))
    assert re.match(
        r"order-o-1 failed: charge failed after 4 attempts in order-o-1, last: CardDeclined\('o-1'\) "
        r"at test_first_minute\.py:\d+\. To catch CardDeclined itself: @app\.step\(raises=\[CardDeclined\]\)\. ",
        text,
    )
    assert "weft retry order-o-1" in text


def test_an_unknown_workflow_is_guessed() -> None:
    text = said(weft.UnknownWorkflow, lambda: app.run("ordr"))
    assert text.startswith('No workflow "ordr" is registered. Did you mean "order"? Registered: ')


def test_a_name_used_twice_names_both_places() -> None:
    def twice() -> None:
        @app.step(name="charge")
        def other() -> None: ...

    text = said(weft.NameTaken, twice)
    assert re.match(
        r'Two steps are called "charge" \(test_first_minute\.py:\d+, test_first_minute\.py:\d+\)\. Names identify ',
        text,
    )


def test_a_workflow_must_be_async() -> None:
    def plain() -> None:
        app.workflow(len)  # type: ignore[arg-type]

    assert "must be `async def`: its waits are awaited. Steps may be plain `def`." in said(weft.NotAsync, plain)


def test_a_context_is_only_there_inside() -> None:
    assert said(weft.NoContext, weft.context) == (
        "weft.context() outside a workflow. In a step use weft.task(); "
        "in a script start a workflow: app.run(order(...))."
    )


def test_a_step_is_no_run() -> None:
    assert said(weft.UsageError, lambda: app.run(charge("o-1"))).startswith("charge is not a call of a workflow.")


def test_a_known_id_with_another_input_shows_the_difference() -> None:
    async def twice() -> None:
        async with app:
            await app.start(order("o-1"), id="order-o-1")
            await app.start(order("o-2"), id="order-o-1")

    assert said(weft.IdTaken, lambda: asyncio.run(twice())) == (
        'order-o-1 exists with another input (order_id: "o-1" there, "o-2" here). '
        "Choose another id, or omit it for a new run."
    )


def test_an_app_that_ran_something_can_be_hosted_later() -> None:
    app.run(order("o-1"), id="order-o-1")

    async def again() -> str:
        async with app:
            return await (await app.start(order("o-2"), id="order-o-2")).result()

    assert asyncio.run(again())


def test_a_message_to_a_finished_run_is_not_delivered() -> None:
    async def late() -> None:
        async with app:
            handle = await app.start(order("o-1"), id="order-o-1")
            await handle.result()
            await handle.send("approved")

    text = said(weft.RunFinished, lambda: asyncio.run(late()))
    assert text.startswith("order-o-1 completed ")
    assert 'the message "approved" was not delivered' in text


PROGRAM = """
import os, sys, time, weft
app = weft.App()

@app.step
def slow(n: int) -> int:
    print(f"begin {n}", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
    return n

@app.workflow
async def count(ctx: weft.Context) -> int:
    return await slow(1) + await slow(2)

if __name__ == "__main__":
    print(app.run(count(), id="count"))
"""


ASKING = """
import weft
app = weft.App()

@app.workflow
async def order(ctx: weft.Context) -> bool:
    return (await ctx.ask("ship", title="Ship it?")).approved

if __name__ == "__main__":
    print(app.run(order(), id="order"))
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[], subprocess.Popen[str]]:
    (tmp_path / "app.py").write_text(PROGRAM)
    command = [sys.executable, "-u", "app.py"]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.mark.proof
def test_ctrl_c_in_a_step_lets_it_end_and_begins_no_other(
    tmp_path: Path, program: Callable[[], subprocess.Popen[str]]
) -> None:
    first = program()
    assert first.stdout is not None
    assert first.stderr is not None
    assert first.stdout.readline() == "begin 1\n"
    time.sleep(1)  # a body may begin a moment before its start is answered, and then less is known to be told
    first.send_signal(signal.SIGINT)
    stopping = first.stderr.readline()
    (tmp_path / "go").touch()
    rest, notices = first.communicate(timeout=120)

    assert rest == ""
    assert [stopping.rstrip(), *notices.splitlines()] == [
        "weft: stopping when the running step has ended. Press Ctrl-C again to stop at once.",
        "weft: count stopped at slow (1 step recorded in weft.db). Run this again and it goes on.",
    ]
    output, notices = program().communicate(timeout=120)
    assert output == "begin 2\n3\n"
    assert notices == "weft: count goes on: 1 step recorded, not repeated\n"


def test_a_program_says_what_its_run_asks_and_how_to_answer(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(ASKING)
    command = [sys.executable, "-u", "app.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stderr is not None
            said = program.stderr.readline()
            assert said == 'weft: order asks "Ship it?"; to answer: weft decide order:ship approve|reject\n'
            answer = [str(Path(sys.executable).with_name("weft")), *["decide", "order:ship", "approve", "--by", "ann"]]
            subprocess.run(answer, cwd=tmp_path, check=True, capture_output=True, timeout=60)
            assert program.communicate(timeout=60) == ("True\n", "")
        finally:
            program.kill()


@pytest.mark.proof
def test_the_same_program_twice_at_once_works_once(
    tmp_path: Path, program: Callable[[], subprocess.Popen[str]]
) -> None:
    first = program()
    assert first.stdout is not None
    assert first.stdout.readline() == "begin 1\n"
    second = program()
    assert second.stderr is not None
    notices = second.stderr.readline()
    (tmp_path / "go").touch()
    output, more = second.communicate(timeout=120)
    rest, _ = first.communicate(timeout=120)

    assert rest == "begin 2\n3\n"
    assert output == "3\n"
    assert (notices, more) == (
        "weft: count runs in another process (0 steps recorded); waiting for its result\n",
        "",
    )


@pytest.mark.proof
def test_a_file_that_runs_at_import_is_told_where_to_put_it(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM.replace('if __name__ == "__main__":\n    ', ""))
    command = [str(Path(sys.executable).with_name("weft")), "run", "app.py", "count"]
    environment = {name: value for name, value in os.environ.items() if name != "WEFT_URL"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 2
    assert "app.py calls app.run() while weft run imports it." in ran.stderr
    assert 'Put it under: if __name__ == "__main__":' in ran.stderr
