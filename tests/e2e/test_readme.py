"""The README keeps its word: its example, pasted into an empty folder, is interrupted and goes on at the right step."""

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import weft

README = Path(__file__).parents[2] / "README.md"
ASLEEP = (
    r"weft: order-o-1 is asleep until \d\d:\d\d:\d\d \(2 steps recorded in weft\.db\)\. Run this again and it goes on\."
)


def example() -> str:
    found = re.search(r"```python\n(# app\.py\n.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "app.py"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_line(process: subprocess.Popen[str], text: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if lines[-1] == text:
            return lines
    raise AssertionError(f"ended with {lines} before it said {text!r}")


async def until_asleep(folder: Path) -> None:
    """Watch the run from this process until its sleep is on disk."""
    async with weft.Client(f"sqlite:///{folder / 'weft.db'}") as client:
        async for event in client.get("order-o-1").events(follow=True):
            if event.kind == "timer_set":
                return
    raise AssertionError("the run ended without a sleep")


@pytest.mark.proof
def test_ctrl_c_in_the_sleep_and_run_again_goes_on_at_the_right_step(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(example())

    first = start(tmp_path)
    before = wait_for_line(first, "pack o-1")
    asyncio.run(until_asleep(tmp_path))
    first.send_signal(signal.SIGINT)
    rest, notice = first.communicate(timeout=120)

    assert before == ["charge o-1", "pack o-1"]
    assert rest == ""
    assert re.fullmatch(ASLEEP, notice.strip())
    assert first.returncode == 130

    second = start(tmp_path)
    output, notice = second.communicate(timeout=120)

    assert notice.strip() == "weft: order-o-1 goes on: 2 steps recorded, not repeated"
    assert output.splitlines() == ["ship o-1", "-> ship o-1"]
    assert second.returncode == 0

    again = subprocess.run(
        [sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert again.stdout.splitlines() == ["-> ship o-1"]
    assert again.stderr.startswith("weft: order-o-1 completed ")


def test_the_example_is_short_and_the_readme_fits_on_a_screen() -> None:
    assert len(example().splitlines()) <= 22
    assert len(README.read_text().splitlines()) <= 70


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
