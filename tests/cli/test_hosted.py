"""Runs that another process hosts are steered from here: real processes, one SQLite file."""

import contextlib
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Weft, at_work, hosting

SLOW = """
import weft

app = weft.App()

@app.step
def first() -> int:
    return 1

@app.workflow
async def slow(ctx: weft.Context) -> str:
    await first()
    await ctx.receive("go")
    return "done"
"""


LOOKS_MAX = 1_000


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of one process that hosts for several tests; each has a run of its own."""
    with at_work(tmp_path_factory.mktemp("host")) as folder, hosting(folder):
        yield folder


@pytest.fixture
def hosted(weft: Weft, host: Path) -> Iterator[Weft]:
    with contextlib.chdir(host):
        yield weft


def document(weft: Weft, *words: str) -> Any:
    return weft(*words, "--json").json()


def test_workflows_of_another_process_are_listed_with_their_style(hosted: Weft) -> None:
    listed = {one["name"]: one["style"] for one in document(hosted, "workflows")["workflows"]}
    assert listed == dict.fromkeys(("doomed", "family", "hello", "order", "patient"), "code")


def test_an_argument_that_no_host_takes_is_refused_before_anything_is_written(hosted: Weft) -> None:
    for words in (("start", "hello", "--id", "h-1"), ("schedule", "add", "h", "hello", "--every", "1d")):
        said = hosted(*words, "name=ann", "nmae=bob")
        assert said.code != 0
        assert 'hello has no argument "nmae". Did you mean "name"?' in said.err
        assert "It takes: name." in said.err
    assert hosted("show", "h-1").code != 0
    assert hosted("schedule", "next", "h").code != 0


def test_an_argument_of_a_type_that_no_host_takes_is_refused_before_anything_is_written(hosted: Weft) -> None:
    assert hosted("start", "order", "order_id=o", "n=2", "--id", "type-1").code == 0
    for words in (
        ("start", "order", "--id", "type-2", "order_id=o"),
        ("schedule", "add", "h", "order", "--every", "1d", "order_id=o"),
    ):
        said = hosted(*words, "n=many")
        assert said.code != 0
        assert 'order does not take this input: "n" must be integer.' in said.err
    said = hosted("fork", "type-1", "--input", "n=many", "--id", "type-2")
    assert said.code != 0
    assert '"n" must be integer' in said.err
    assert hosted("show", "type-2").code != 0
    assert hosted("schedule", "next", "h").code != 0
    assert hosted("fork", "type-1", "--input", "n=3", "--id", "type-3").code == 0


def test_a_start_without_an_argument_that_every_host_needs_is_refused_before_anything_is_written(hosted: Weft) -> None:
    for words in (("start", "hello", "--id", "h-2"), ("schedule", "add", "h", "hello", "--every", "1d")):
        said = hosted(*words)
        assert said.code != 0
        assert 'hello needs "name".' in said.err
        assert "name=…" in said.err
    assert hosted("show", "h-2").code != 0
    assert hosted("schedule", "next", "h").code != 0


def test_a_start_of_a_workflow_that_no_host_has_names_the_one_that_may_be_meant(hosted: Weft) -> None:
    said = hosted("start", "helo", "name=ann", "--id", "h-3")
    assert said.out == "h-3\n"
    assert 'No running host offers helo, so its runs wait until one does. Did you mean "hello"?' in said.err


def test_a_run_that_another_process_hosts_takes_messages_and_answers(hosted: Weft) -> None:
    assert hosted("start", "patient", "--id", "p-1").out == "p-1\n"
    assert hosted("send", "p-1", "quote", "42").out == '"quote" delivered to p-1\n'
    until(hosted, "p-1", "ask_opened")
    assert "p-1:ship" in hosted("inbox").out

    said = hosted("decide", "p-1:ship", "approve", "--form", '{"carrier": "ups", "boxes": 3}', "--by", "ann")

    assert (said.out, said.err) == ("approved p-1:ship as ann\n", "")
    watched = hosted("watch", "p-1")
    assert watched.code == 0
    assert watched.out.rstrip().endswith("→ ann ships with ups, '', 3")


def test_a_message_of_the_wrong_type_is_shown_as_refused(hosted: Weft) -> None:
    hosted("start", "patient", "--id", "p-9")
    hosted("send", "p-9", "quote", '{"cents": 42}')
    until(hosted, "p-9", "message_refused")

    shown = hosted("show", "p-9").out

    assert "✗ quote" in shown
    assert "must be an integer" in shown
    assert "● quote!1" in shown


def test_a_run_that_another_process_hosts_is_paused_resumed_and_cancelled(hosted: Weft) -> None:
    hosted("start", "patient", "--id", "p-2")

    assert hosted("pause", "p-2").out == "p-2 is paused: weft resume p-2\n"
    assert document(hosted, "show", "p-2")["status"] == "paused"
    assert hosted("resume", "p-2").out == "p-2 continues\n"
    assert document(hosted, "show", "p-2")["status"] == "running"
    assert hosted("cancel", "p-2", "--reason", "enough").out == "p-2 is asked to stop\n"
    watched = hosted("watch", "p-2")
    assert watched.code == 1
    assert "cancelled: enough" in watched.out


def test_a_failed_run_is_tried_again_by_the_process_that_hosts_it(hosted: Weft) -> None:
    hosted("start", "doomed", "order_id=o-1", "--id", "d-1")
    assert hosted("watch", "d-1").code == 1

    said = hosted("retry", "d-1")

    assert (said.out, said.err) == ("d-1 is retried\n", "")
    assert hosted("watch", "d-1").code == 1
    assert document(hosted, "show", "d-1")["retries"] == 1


def until(weft: Weft, run: str, kind: str) -> None:
    """Look at the log until it holds an event of this kind."""
    for _ in range(LOOKS_MAX):
        if kind in weft("events", run).out:
            return
        time.sleep(0.02)
    pytest.fail(f"{run} never got to {kind}")


@pytest.mark.proof
def test_a_host_that_was_killed_is_not_taken_for_one(weft: Weft, folder: Path) -> None:
    with hosting(folder) as host:
        weft("start", "patient", "--id", "p-1")
        host.kill()
        host.wait()
        said = weft("send", "p-1", "quote", "42")

    assert "no process hosts the run now" in said.err
    with hosting(folder):
        until(weft, "p-1", "ask_opened")
    assert "Ship for 42?" in weft("inbox").out


def test_the_log_is_followed_to_the_end_of_the_run(weft: Weft, folder: Path, executable: str) -> None:
    with hosting(folder):
        weft("start", "patient", "--id", "p-1")
        with subprocess.Popen(
            [executable, "events", "p-1", "--follow", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True
        ) as follower:
            assert follower.stdout is not None
            assert '"kind":"run_started"' in follower.stdout.readline()
            weft("cancel", "p-1")
            lines = follower.stdout.read().splitlines()

    assert '"kind":"run_cancelled"' in lines[-1]
    assert follower.returncode == 0


@pytest.mark.proof
def test_ctrl_c_ends_a_run_with_a_word_and_the_next_one_goes_on(weft: Weft, folder: Path, executable: str) -> None:
    (folder / "slow.py").write_text(SLOW)
    command = [executable, "run", "slow.py", "slow", "--id", "s-1"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        until(weft, "s-1", "message_awaited")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()

    assert process.returncode == 130
    assert "s-1" in said
    assert "(1 step recorded in weft.db). Run this again and it goes on." in said
    assert "Traceback" not in said
    weft("send", "s-1", "go")
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert again.stdout == "done\n"
    # It has mail, so the new host goes on with it at once, perhaps before anybody asks for its result.
    assert "s-1 goes on: 1 step recorded, not repeated" in again.stderr or "s-1 completed just now" in again.stderr


@pytest.mark.proof
def test_on_a_terminal_watching_is_drawn_in_place(weft: Weft, folder: Path, executable: str) -> None:
    with hosting(folder):
        weft("start", "patient", "--id", "p-1")
        master, terminal = pty.openpty()
        with subprocess.Popen(
            [executable, "watch", "p-1"], cwd=folder, stdout=terminal, env={**os.environ, "TERM": "xterm-256color"}
        ):
            os.close(terminal)
            shown = os.read(master, 65536)
            while b"weft send p-1 quote" not in shown:
                shown += os.read(master, 65536)
            weft("cancel", "p-1", "--reason", "enough")
            with contextlib.suppress(OSError):
                while more := os.read(master, 65536):
                    shown += more
        os.close(master)

    assert "⠋" in shown.decode() or "⠙" in shown.decode()
    assert b"\x1b[" in shown
    assert b"cancelled: enough" in shown


@pytest.mark.proof
@pytest.mark.parametrize("words", [["events", "m"], ["show", "m", "--tree"], ["events", "m", "--json"]])
def test_a_reader_that_has_seen_enough_is_no_failure(folder: Path, executable: str, words: list[str]) -> None:
    program = "import weft\napp = weft.App()\n@app.step\ndef one(n: int) -> str:\n    return 'x' * 500\n"
    program += "@app.workflow\nasync def many() -> int:\n    for n in range(300):\n        await one(n)\n    return 1\n"
    (folder / "many.py").write_text(program)
    subprocess.run([executable, "run", "many.py", "many", "--id", "m"], cwd=folder, capture_output=True, check=True)
    with subprocess.Popen([executable, *words], cwd=folder, stdout=subprocess.PIPE) as reading:
        assert reading.stdout is not None
        reading.stdout.read(10)
        reading.stdout.close()

    assert reading.returncode == 0


BLOCKED = """
import threading

import weft

app = weft.App()


@app.step
def block() -> None:
    print("in", flush=True)
    threading.Event().wait()


@app.workflow
async def blocked() -> None:
    await block()
"""


def watched_until(folder: Path, executable: str, run: str, told: str) -> str:
    """What watching a run says elsewhere than on a terminal, up to a line that has this."""
    command = [executable, "watch", run]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as watching:
        assert watching.stdout is not None
        text = ""
        for line in watching.stdout:
            text += line
            if told in line:
                break
        watching.kill()
    return text


@pytest.mark.proof
def test_watching_says_that_nobody_performs_a_step_after_its_host_was_killed(folder: Path, executable: str) -> None:
    (folder / "blocked.py").write_text(BLOCKED)
    command = [executable, "run", "blocked.py", "blocked", "--id", "b-1"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "in\n"
        host.kill()

    text = watched_until(folder, executable, "b-1", "block  no process hosts it now")

    assert text.startswith("b-1  running for ")
    assert "block  no process hosts it now" in text
    assert "under way" not in text


@pytest.mark.proof
def test_watching_a_pending_run_says_why_nothing_happens(weft: Weft, folder: Path, executable: str) -> None:
    weft("start", "nobody", "--id", "n-1")

    text = watched_until(folder, executable, "n-1", "no host has claimed it")

    assert text.startswith("n-1  pending for ")
    assert 'pending: no host has claimed it: no running host offers "nobody"' in text
