"""Scripts that end, and servers that fork: real processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SHOP = """
import os, sys, threading
import weft
from tests.blocking.shop import make_shop
app = make_shop()
"""


def play(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(SHOP + textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "WEFT_URL": "sqlite:///weft.db", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_script_ends_by_itself_and_the_engine_ends_with_it(tmp_path: Path) -> None:
    ran = play(tmp_path, """print(app.sync.start("order", {"item": "soup"}).result())""")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("box of soup\n", "", 0)


def test_a_script_ends_although_a_resource_never_opens(tmp_path: Path) -> None:
    program = """
    import asyncio
    from collections.abc import AsyncIterator

    class Pool: ...

    begun = threading.Event()

    @app.resource
    async def pool() -> AsyncIterator[Pool]:
        begun.set()
        await asyncio.Event().wait()
        yield Pool()

    @app.step
    async def fetch(*, pool: Pool = weft.injected) -> str:
        return "never"

    def ask() -> None:
        try:
            app.sync.start("order", {"item": "soup"})
        except weft.NotRunning as error:
            print(error.message, flush=True)

    threading.Thread(target=ask).start()
    begun.wait()
    """
    ran = play(tmp_path, program)
    assert ran.stdout == "The program is ending, so this thread cannot open the engine or client.\n"
    assert (ran.stderr, ran.returncode) == ("", 0)


@pytest.mark.proof
def test_a_script_that_ends_while_a_step_runs_lets_it_finish(tmp_path: Path) -> None:
    program = """
    begun, ending = threading.Event(), threading.Event()
    @app.step
    def slow() -> str:
        begun.set()
        ending.wait()
        return "done"
    @app.workflow
    async def slowly() -> str:
        return await slow()
    handle = app.sync.start(slowly(), id="s-1")
    begun.wait()
    threading._register_atexit(ending.set)  # called when the main thread has ended
    """
    ran = play(tmp_path, program)
    assert (ran.stderr, ran.returncode) == ("", 0)
    again = play(
        tmp_path,
        """
    @app.step
    def slow() -> str:
        raise AssertionError("it was performed already")
    @app.workflow
    async def slowly() -> str:
        return await slow()
    print(app.sync.get("s-1").result())
    """,
    )
    assert (again.stdout, again.stderr) == ("done\n", "")


@pytest.mark.proof
@pytest.mark.parametrize("opened", ["app.sync.open()", ""], ids=["opened before", "never opened"])
def test_a_thread_that_outlives_the_script_starts_nothing(tmp_path: Path, opened: str) -> None:
    program = f"""
    closed = threading.Event()
    threading._register_atexit(closed.set)  # called after what is registered later
    {opened}
    def late() -> None:
        closed.wait()
        try:
            app.sync.start("order", {{"item": "soup"}})
        except weft.NotRunning as refused:
            print(refused.message)
    threading.Thread(target=late).start()
    """
    ran = play(tmp_path, program)
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == "The program is ending, so this thread cannot open the engine or client.\n"


@pytest.mark.proof
def test_a_script_that_fails_ends_with_its_own_error(tmp_path: Path) -> None:
    ran = play(
        tmp_path,
        """
    handle = app.sync.start("greeted")
    raise SystemExit("stopped")
    """,
    )
    assert (ran.stderr, ran.returncode) == ("stopped\n", 1)


def test_control_c_ends_a_script_that_waits(tmp_path: Path) -> None:
    ran = play(
        tmp_path,
        """
    import signal
    handle = app.sync.start("greeted", id="g-1")
    @app.step
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
    @app.workflow
    async def interrupts() -> None:
        await interrupt()
    try:
        app.sync.start(interrupts())
        handle.result()
    except KeyboardInterrupt:
        print(handle.status())
    """,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("running\n", "", 0)


@pytest.mark.proof
def test_a_client_ends_with_its_script(tmp_path: Path) -> None:
    ran = play(
        tmp_path,
        """
    client = weft.Client("sqlite:///weft.db").sync
    print(client.start("order", {"item": "soup"}, id="o-1").status())
    """,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("pending\n", "", 0)


@pytest.mark.proof
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system cannot fork")
def test_workers_that_were_forked_before_open_their_own_engine(tmp_path: Path) -> None:
    """A pre-forking server loads the application, forks, and then takes requests."""
    ran = play(
        tmp_path,
        """
    children = []
    for number in range(3):
        child = os.fork()
        if not child:
            assert app.sync.start("order", {"item": str(number)}, id=f"o-{number}").result() == f"box of {number}"
            sys.exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(codes, sorted(handle.status() for handle in app.sync.list()))
    """,
    )
    assert (ran.stdout, ran.stderr) == ("[0, 0, 0] ['completed', 'completed', 'completed']\n", "")


@pytest.mark.proof
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system cannot fork")
def test_a_worker_that_was_forked_from_an_open_engine_is_told_so(tmp_path: Path) -> None:
    ran = play(
        tmp_path,
        """
    import warnings
    warnings.simplefilter("ignore")  # Python itself warns about a fork with threads
    handle = app.sync.start("order", {"item": "soup"})
    client = weft.Client("sqlite:///weft.db").sync
    client.start("order", {"item": "soup"})
    child = os.fork()
    if not child:
        starts = lambda: app.sync.start("greeted")
        for call in (handle.status, app.sync.open, app.sync.close, starts, client.get("x").status):
            try:
                call()
            except weft.UsedAfterFork as error:
                print(error.code, flush=True)
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, handle.result())
    """,
    )
    assert (ran.stdout, ran.stderr) == ("usage.after_fork\n" * 5 + "0 box of soup\n", "")


@pytest.mark.proof
def test_a_file_that_uses_it_while_a_command_imports_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP + 'app.sync.start("order", {"item": "soup"})\n')
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "weft"), "run", "shop.py", "order", "item=soup"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "shop.py calls app.sync while weft run imports it." in ran.stderr
    assert ran.returncode
