"""``python -m bench.instructions BEFORE``: count instructions per step of this tree and of another checkout.

Instructions do not depend on what else the machine does, so they show what a noisy clock hides. Each workload runs
under callgrind in two sizes; the difference leaves out what a process costs by itself. BEFORE is a checkout with an
environment of its own (``make setup`` there).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.measure import ROOT


class Counted(NamedTuple):
    module: str
    task: str
    sizes: tuple[int, int]


COUNTED = {
    "W1": Counted("weft_code", "W1", (50, 250)),
    "W2": Counted("weft_code", "W2", (20, 100)),
    "W3": Counted("weft_code", "W3", (50, 250)),
    "W5": Counted("weft_code", "W5", (20, 100)),
    "G2": Counted("weft_graph", "G2", (20, 100)),
    "A2": Counted("weft_goal", "A2", (20, 100)),
}


# Compiled files are kept and hashes are fixed, or starting a process would cost more or less from one time to the next.
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}


def counted(tree: Path, module: str, task: str, n: int) -> int:
    """The instructions of one process."""
    scratch = tempfile.mkdtemp(prefix="weft-instructions-")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out", str(tree / ".venv/bin/python")]
    try:
        ran = subprocess.run(
            [*command, "-m", f"bench.workloads.{module}", task, str(n), scratch],
            cwd=tree, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode or found is None:
        sys.exit(f"{module} {task} {n} in {tree} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return int(found[1])


def each(tree: Path, workload: Counted) -> float:
    """Instructions per unit of a workload: a step, or a run."""
    few, many = (counted(tree, workload.module, workload.task, n) for n in workload.sizes)
    return (many - few) / (workload.sizes[1] - workload.sizes[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("before", type=Path, help="a checkout to compare with")
    parser.add_argument("--only", default=",".join(COUNTED), metavar="W1,W2", help="these workloads only")
    given = parser.parse_args()
    for name in given.only.split(","):
        before, now = (each(tree.resolve(), COUNTED[name]) for tree in (given.before, ROOT))
        print(f"{name}: {before:,.0f} before, {now:,.0f} now, {now / before:.3f} of before", flush=True)


if __name__ == "__main__":
    main()
