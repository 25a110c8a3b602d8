"""The same programs, another URL: what users run on a file runs on Postgres as it stands, in all three styles."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import weft
from tests import servers

EXAMPLES = Path(__file__).parents[2] / "examples"
UID = re.compile(r"[0-9a-f]{32}")

STYLES = """
import weft

app = weft.App()


@app.workflow
async def pick(ctx: weft.Context, order_id: str) -> str:
    await ctx.sleep("10ms", name="walk to the shelf")
    return f"picked {order_id}"


packing = app.graph({
    "weft": "graph/1",
    "name": "packing",
    "input": {"order_id": "string"},
    "nodes": {
        "pick": {
            "workflow": "pick",
            "with": {"order_id": "${input.order_id}"},
            "save": {"state.parcel": "${output}"},
        },
    },
    "output": {"parcel": "${state.parcel}"},
}, gives=["parcel"])


@app.step
async def announce(parcel: str) -> str:
    return f"sent {parcel}"


@app.workflow
async def fulfil(ctx: weft.Context, order_id: str) -> str:
    facts = await ctx.achieve(announce, given={"order_id": order_id})
    return facts.of(announce)


if __name__ == "__main__":
    print(app.run(fulfil("o-1"), id="fulfil-o-1"))
"""


@pytest.fixture
def url() -> str:
    found = servers.database("programs")
    servers.empty(found)
    return found


def printed(program: Path, folder: Path, url: str) -> str:
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env=os.environ | {"WEFT_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return UID.sub("uid", ran.stdout)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["p07_child", "p02_retry_timeout", "p08_graph_yaml", "p09_graph_builder", "p10_goal"])
def test_a_program_prints_on_postgres_what_it_prints_on_a_file(tmp_path: Path, url: str, name: str) -> None:
    program = EXAMPLES / f"{name}.py"

    assert printed(program, tmp_path, url) == printed(program, tmp_path, f"sqlite:///{tmp_path}/weft.db") != ""


@pytest.mark.proof
def test_a_tree_of_all_three_styles_runs_and_can_be_looked_at(tmp_path: Path, url: str) -> None:
    program = tmp_path / "styles.py"
    program.write_text(STYLES)

    assert printed(program, tmp_path, url) == "sent picked o-1\n"

    listed = weft_says(tmp_path, url, "list", "--json")
    runs = msgspec.json.decode(listed)["runs"]
    assert {run["status"] for run in runs} == {"completed"}
    assert {run["workflow"] for run in runs} >= {"fulfil", "packing", "pick"}
    assert "completed" in weft_says(tmp_path, url, "show", "fulfil-o-1")


def weft_says(folder: Path, url: str, *words: str) -> str:
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("weft")), *words, "--url", url],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.proof
def test_p01_is_killed_in_its_sleep_and_goes_on(tmp_path: Path, url: str) -> None:
    """Its death shows when its lease is over; then whoever is there takes over."""

    async def until_asleep() -> None:
        async with weft.Client(url) as client:
            while not (found := [handle async for handle in client.list()]):
                await asyncio.sleep(0.01)
            async for event in found[0].events(follow=True):
                if event.kind == "timer_set":
                    return

    program = EXAMPLES / "p01_hello.py"
    first = subprocess.Popen([sys.executable, str(program)], cwd=tmp_path, env=os.environ | {"WEFT_URL": url})
    try:
        asyncio.run(until_asleep())
    finally:
        first.kill()
        first.wait()

    second = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=os.environ | {"WEFT_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert second.stdout == "hello world!\n", second.stderr
    assert "hello-world runs in another process (1 step recorded)" in second.stderr


def test_large_values_are_kept_where_weft_blobs_says(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_BLOBS", f"file://{tmp_path}/blobs")
    app = weft.App(url)

    @app.step
    async def large() -> str:
        return "x" * 100_000

    @app.workflow
    async def order(ctx: weft.Context) -> int:
        return len(await large())

    assert app.run(order()) == 100_000
    assert [file.stat().st_size for file in (tmp_path / "blobs").rglob("*") if file.is_file()] == [100_002]


def test_a_file_keeps_its_blobs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_BLOBS", f"file://{tmp_path}/blobs")
    app = weft.App(f"sqlite:///{tmp_path}/weft.db")

    @app.workflow
    async def order(ctx: weft.Context) -> None: ...

    with pytest.raises(weft.UsageError, match="keeps its own blobs"):
        app.run(order())
