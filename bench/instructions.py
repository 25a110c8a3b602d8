"""``python -m bench.instructions BEFORE``: count instructions per step of this tree and of another checkout.

Instructions do not depend on what else the machine does, so they show what a noisy clock hides. Each workload runs
under callgrind in two sizes; the difference leaves out what a process costs by itself. BEFORE is a checkout with an
environment of its own (``make setup`` there). With ``--postgres``, code workflows run on a Postgres server; only the
instructions of this process are counted, not those of the server.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import postgres
from bench.measure import ROOT


class Counted(NamedTuple):
    module: str
    task: str
    sizes: tuple[int, int]
    resumes: bool = False
    """It goes on with what a killed process of the same tree left behind."""


COUNTED = {
    "W1": Counted("weft_code", "W1", (50, 1050)),
    "W2": Counted("weft_code", "W2", (20, 100)),
    "W3": Counted("weft_code", "W3", (50, 250)),
    "W4": Counted("weft_code", "W4-resume", (200, 1200), resumes=True),
    "W5": Counted("weft_code", "W5", (20, 100)),
    "W6": Counted("weft_code", "W6", (2000, 4000)),
    "W7": Counted("weft_code", "W7", (100, 500)),
    "G2": Counted("weft_graph", "G2", (20, 100)),
    "G3": Counted("weft_graph", "G3", (50, 250)),
    "G8": Counted("weft_graph", "G8", (400, 600)),
    "A2": Counted("weft_goal", "A2", (20, 100)),
    "A2-frozen": Counted("weft_goal", "A2-frozen", (20, 100)),
    "A8": Counted("weft_goal", "A8", (400, 600)),
}

SLOWER = 200
"""Callgrind on a busy machine makes everything so much slower; what is measured in seconds gets as many more of them,
or the pauses of background duties would be counted too."""
RUN = f"""
import importlib
import runpy
import sys

SECONDS = ("SLICE_SECONDS", "SHARE_SECONDS", "PACE_S_MAX", "COMMIT_S_MAX", "SAMPLE_S_MAX", "START_SECONDS")
MODULES = (  # each tree has some of them
    "runtime.committer",
    "runtime.commit",
    "runtime.turns",
    "runtime.loop_share",
    "runtime.store_timeout",
    "runtime.private_loop",
    "runtime.run.private_loop",
    "stores.sqlite.writer",
)
for module in MODULES:
    try:
        found = importlib.import_module("weft." + module)
    except ImportError:
        continue
    for name in SECONDS:
        if hasattr(found, name):
            setattr(found, name, getattr(found, name) * {SLOWER})

try:
    from weft.runtime import project_settings as home
except ImportError:  # an older tree
    from weft.authoring import app as home
from weft.runtime.settings import Settings

DUTIES = ("lease_seconds", "poll_seconds", "scan_seconds", "look_seconds", "health_seconds", "idle_seconds")
slower = {{name: getattr(Settings(), name) * {SLOWER} for name in DUTIES}}
home.Settings = lambda **given: Settings(**slower, **given)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
RECORD = """
import sys
from pathlib import Path
from bench.kill import record_then_kill
record_then_kill(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
"""


# Compiled files are kept and hashes are fixed, or starting a process would cost more or less from one time to the next.
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}


ON_POSTGRES = ("W1", "W2", "W3")


def counted(tree: Path, workload: Counted, n: int, base: str = "") -> int:
    """The instructions of one process, with a new database on the server ``base`` if there is one."""
    if not base:
        return counted_in(tree, workload, n, ENVIRONMENT)
    with postgres.database(base, f"instructions_{tree.name}_{n}") as url:
        return counted_in(tree, workload, n, {**ENVIRONMENT, postgres.URL: url})


def counted_in(tree: Path, workload: Counted, n: int, environment: dict[str, str]) -> int:
    scratch = tempfile.mkdtemp(prefix="weft-instructions-")
    python, module = str(tree / ".venv/bin/python"), f"bench.workloads.{workload.module}"
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={scratch}/out"]
    try:
        if workload.resumes:
            subprocess.run([python, "-c", RECORD, module, str(n), scratch], cwd=tree, env=environment, check=True)
        ran = subprocess.run(
            [*callgrind, python, "-c", RUN, module, workload.task, str(n), scratch],
            cwd=tree, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode or found is None:
        sys.exit(f"{workload} {n} in {tree} failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return int(found[1])


def each(tree: Path, workload: Counted, base: str = "") -> float:
    """Instructions per unit of a workload: a step, a run, or several runs of as many steps."""
    few, many = (counted(tree, workload, n, base) for n in workload.sizes)
    return (many - few) / (workload.sizes[1] - workload.sizes[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("before", type=Path, help="a checkout to compare with")
    parser.add_argument("--only", default="", metavar="W1,W2", help="these workloads only")
    parser.add_argument("--postgres", action="store_true", help=f"on Postgres: {', '.join(ON_POSTGRES)}")
    given = parser.parse_args()
    for tree in (given.before, ROOT):
        # Or the first process would be counted with what compiling costs.
        subprocess.run([tree / ".venv/bin/python", "-m", "compileall", "-q", "src", "bench"], cwd=tree, check=False)
    with ExitStack() as stack:
        base = stack.enter_context(postgres.server()) if given.postgres else ""
        names = given.only.split(",") if given.only else ON_POSTGRES if base else COUNTED
        for name in names:
            before, now = (each(tree.resolve(), COUNTED[name], base) for tree in (given.before, ROOT))
            print(f"{name}: {before:,.0f} before, {now:,.0f} now, {now / before:.3f} of before", flush=True)


if __name__ == "__main__":
    main()
