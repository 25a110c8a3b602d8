"""The demo that `make run` plays: killed half-way, continued, and everything that really happened counted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
AT_LEAST_ONCE = "<- killed before its result was recorded: at least once, as promised"
AGAIN = 'pack("pasta") had no result, so it is performed again'
SAME_KEY = "<- performed twice, done once (same key)"


def scenes(text: str) -> dict[str, list[str]]:
    """What was said under each number of the play."""
    found: dict[str, list[str]] = {}
    number = ""
    for line in text.splitlines():
        if line[:1].isdigit():
            number = line[0]
        found.setdefault(number if line.startswith("   ") else f"{number} title", []).append(line.strip())
    return found


def counts(lines: list[str]) -> dict[str, int]:
    return {m[2].strip(): int(m[1]) for line in lines if (m := re.match(r"(\d+) x ([^<]+)", line))}


def performed_once(order: str) -> dict[str, int]:
    effects = [f"reserved stock for {order}", f"charged 42.00 EUR for {order}", "packed soup", "packed pasta"]
    return dict.fromkeys([*effects, "packed cake", f"shipped {order}"], 1)


def play(folder: Path) -> dict[str, list[str]]:
    ran = subprocess.run([sys.executable, DEMO], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return scenes(ran.stdout)


@pytest.mark.proof
def test_the_demo_tells_the_truth_about_a_kill(tmp_path: Path) -> None:
    (tmp_path / "demo.db").write_bytes(b"")  # an earlier play left something behind
    said = play(tmp_path)

    assert re.fullmatch(r"2  kill -9 \d+: the process is gone, in the middle of a step", said["2 title"][0])
    assert said["1"] == ["reserved stock for o-1", "charged 42.00 EUR for o-1", "packed soup", "packed pasta"]
    assert said["3"] == [
        f"weft: order-o-1 goes on: 3 steps recorded, not repeated; {AGAIN}",
        "packed pasta",
        "packed cake",
        "shipped o-1",
        "-> track-77",
    ]
    # Without keys: what was cut off happened twice, and nothing else did.
    assert counts(said["4"]) == {**performed_once("o-1"), "packed pasta": 2}
    assert [line for line in said["4"] if "<-" in line] == [f"2 x packed pasta          {AT_LEAST_ONCE}"]
    # With keys: performed twice as well, and done once.
    assert "packed pasta: known, not done again" in said["5"]
    assert counts(said["6"]) == performed_once("o-2")
    assert [line for line in said["6"] if "<-" in line] == [f"1 x packed pasta          {SAME_KEY}"]
    assert said["6 title"][-1].startswith("Next: weft show order-o-1 --url sqlite:///demo.db")
    # The ledger is the witness, not what the play says about it.
    assert (tmp_path / "demo-ledger.txt").read_text().splitlines().count("packed pasta") == 2
