"""Notebooks: a real IPython shell, and a real kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.blocking.notebook import run_cells
from weft.stores import open_store

ROOT = Path(__file__).parents[2]

DEFINE = """
import weft
app = weft.App()
@app.step
def pack(item: str) -> str:
    return "box of " + item
@app.workflow
async def order(item: str) -> str:
    return await pack(item)
"""
AGAIN = """
@app.step
def pack(item: str) -> str:
    return "bag of " + item
"""


@pytest.mark.proof
def test_a_cell_starts_runs_without_hosting_first(tmp_path: Path) -> None:
    ran = run_cells(
        tmp_path,
        DEFINE,
        "handle = await app.start(order('soup'), id='o-1')",
        "print(await handle.result())",
        "print(await order('cake'), await app.get('o-1').status())",
    )
    assert ran.stdout == "box of soup\nbox of cake completed\n", ran.stderr
    assert (ran.stderr, ran.returncode) == ("", 0)


@pytest.mark.proof
def test_a_notebook_that_hosts_nothing_yet_is_told_how(tmp_path: Path) -> None:
    cell = "try:\n    app.get('o-1')\nexcept weft.NotRunning as error:\n    print(error.hint)"
    ran = run_cells(tmp_path, DEFINE, cell)
    assert ran.stdout.startswith("In a notebook, the first `await app.start(...)` hosts the app."), ran.stderr


@pytest.mark.proof
def test_cells_that_ask_at_once_host_once(tmp_path: Path) -> None:
    cell = "import asyncio\nprint(await asyncio.gather(*(order(str(n)) for n in range(3))))"
    ran = run_cells(tmp_path, DEFINE, cell)
    assert ran.stdout == "['box of 0', 'box of 1', 'box of 2']\n", ran.stderr


@pytest.mark.proof
def test_a_step_and_a_workflow_can_be_defined_again_and_it_is_said_once(tmp_path: Path) -> None:
    ran = run_cells(tmp_path, DEFINE, "print(await order('soup'))", AGAIN, AGAIN, "print(await order('soup'))")
    assert ran.stdout == "box of soup\nbag of soup\n", ran.stderr
    assert ran.stderr == "weft: pack is defined again; its newest definition counts from now on\n"
    other = """
    @app.workflow
    async def order(item: str, times: int = 2) -> str:
        return ", ".join([await pack(item) for _ in range(times)])
    """
    ran = run_cells(tmp_path, DEFINE, "print(await order('soup'))", other, "print(await order('soup'))")
    assert ran.stdout == "box of soup\nbox of soup, box of soup\n", ran.stderr


@pytest.mark.proof
def test_the_newest_app_of_a_notebook_takes_the_place_of_the_older(tmp_path: Path) -> None:
    """A cell that makes the app is run again: the steps of the old one must not perform anything more."""
    again = DEFINE.replace("box", "bag")
    ran = run_cells(tmp_path, DEFINE, "print(await order('soup'))", again, "print(await order('soup'))")
    assert ran.stdout == "box of soup\nbag of soup\n", ran.stderr
    assert ran.stderr == "weft: a newer app of this notebook hosts sqlite:///weft.db from now on\n"


@pytest.mark.proof
def test_a_notebook_leaves_its_store_in_order(tmp_path: Path) -> None:
    run_cells(tmp_path, DEFINE, "print(await order('soup'))")
    assert hosts_of(f"sqlite:///{tmp_path}/weft.db") == []


def hosts_of(url: str) -> list[str]:
    """The hosts that have not left the store."""

    async def read() -> list[str]:
        store = open_store(url)
        await store.open()
        try:
            return [row.host for row in await store.hosts.list_all()]
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.mark.proof
def test_a_step_can_become_a_workflow(tmp_path: Path) -> None:
    other = """
    @app.workflow
    async def pack(item: str) -> str:
        return "a child run for " + item
    @app.workflow
    async def order(item: str) -> str:
        return await pack(item)
    """
    ran = run_cells(tmp_path, DEFINE, other, "print(await order('soup'))")
    assert ran.stdout == "a child run for soup\n", ran.stderr


@pytest.mark.proof
def test_goals_follow_a_step_that_is_defined_again(tmp_path: Path) -> None:
    define = """
    import weft
    app = weft.App()
    @app.step(gives="total")
    def price(item: str) -> int:
        return 1
    goal = app.goal("priced", "price")
    """
    again = """
    @app.step(gives="total")
    def price(item: str, times: int = 2) -> int:
        return times
    goal = app.goal("priced", price)
    """
    ran = run_cells(
        tmp_path,
        define,
        "print((await (await app.start(goal, {'item': 'soup'})).result())['total'])",
        again,
        "print((await (await app.start(goal, {'item': 'soup', 'times': 3})).result())['total'])",
    )
    assert ran.stdout == "1\n3\n", ran.stderr


@pytest.mark.proof
def test_two_modules_with_one_name_are_refused_in_a_notebook_too(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def pack(item: str) -> str:\n    return item\n")
    cell = """
    import sys; sys.path.insert(0, ".")
    import other
    try:
        app.step(other.pack)
    except weft.NameTaken as error:
        print(error.code)
    """
    ran = run_cells(tmp_path, DEFINE, cell)
    assert ran.stdout == "usage.name_taken\n", ran.stderr


@pytest.mark.proof
def test_plain_cells_can_block_where_no_loop_runs(tmp_path: Path) -> None:
    ran = run_cells(tmp_path, DEFINE, "print(app.sync.start(order('soup')).result())")
    assert (ran.stdout, ran.stderr) == ("box of soup\n", "")


@pytest.mark.proof
def test_a_cell_does_not_block_the_loop_on_which_another_has_hosted(tmp_path: Path) -> None:
    """That loop stands still between cells, so the call would wait for ever."""
    refused = "try:\n    app.sync.start(order('tea'))\nexcept weft.LoopRunning as error:\n    print(error.hint)"
    ran = run_cells(tmp_path, DEFINE, "print(await (await app.start(order('soup'))).result())", refused)
    hint = "Use await there: await app.start(...). In a notebook, use either await or app.sync."
    assert (ran.stdout, ran.stderr) == (f"box of soup\n{hint}\n", "")


def test_a_kernel_hosts_between_cells_and_ends_cleanly(tmp_path: Path) -> None:
    manager = KernelManager(shutdown_wait_time=60)  # after that it is killed, and cannot end cleanly
    env = {"HOME": str(tmp_path), "WEFT_URL": "sqlite:///weft.db", "PATH": "", "PYTHONPATH": str(ROOT)}
    manager.start_kernel(cwd=str(tmp_path), env=env)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        assert output_of(client, DEFINE) == ""
        assert output_of(client, "handle = await app.start(order('soup'), id='o-1')") == ""
        assert output_of(client, "print(await handle.result())") == "box of soup\n"
        refused = "try:\n    app.sync.start(order('soup'))\nexcept weft.LoopRunning as error:\n    print(error.code)"
        assert output_of(client, refused) == "usage.loop_running\n"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    assert not manager.has_kernel
    assert hosts_of(f"sqlite:///{tmp_path}/weft.db") == []


def output_of(client: BlockingKernelClient, cell: str) -> str:
    """Run a cell and return what it prints."""
    said: list[str] = []

    def note(message: dict[str, object]) -> None:
        content = message["content"]
        assert isinstance(content, dict)
        if message["msg_type"] == "stream":
            said.append(str(content["text"]))
        elif message["msg_type"] == "error":
            said.append("\n".join(content["traceback"]))

    client.execute_interactive(cell, output_hook=note, timeout=60)
    return "".join(said)
