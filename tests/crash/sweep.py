"""Kill the program at its n-th boundary, for every n, and go on; then kill the recovery too.

Runs as a program of its own, without threads, so that each trial is a fork: ``python -m tests.crash.sweep FOLDER code
single 1`` goes through all single points (``single 3`` through every third), ``pairs N SEED`` through N pairs (first
kill, then a kill during the recovery); ``graph``, ``goal``, ``schedule``, ``bulk``, ``fork``, ``patch`` (of code runs),
``graph-patch`` and ``move`` instead of ``code`` play those.
``WEFT_CRASH_URL`` names a database of Postgres, which is emptied before each trial; else every trial has a file.
Prints one JSON line.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path

from tests import servers
from tests.crash import (
    asked_scenario,
    bulk_scenario,
    checks,
    fork_scenario,
    goal_scenario,
    graph_patch_scenario,
    graph_scenario,
    move_scenario,
    patch_scenario,
    scenario,
    schedule_scenario,
)
from weft.ports.boundary import set_hook

NEVER = 10**9
TRIAL_SECONDS_MAX = 60
SCENARIOS = {
    "code": scenario,
    "goal": goal_scenario,
    "graph": graph_scenario,
    "schedule": schedule_scenario,
    "bulk": bulk_scenario,
    "fork": fork_scenario,
    "asked": asked_scenario,
    "patch": patch_scenario,
    "graph-patch": graph_patch_scenario,
    "move": move_scenario,
}
URL = os.environ.get("WEFT_CRASH_URL")
PLAYED = SCENARIOS[sys.argv[2]]


def trial(folder: Path, kill_at: int) -> tuple[bool, Counter[str]]:
    """Run the program in a fork and kill it at its ``kill_at``-th boundary.

    Whether it came to its end, and what it passed.
    """
    seen_path = folder / "seen.txt"
    seen_path.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(TRIAL_SECONDS_MAX)
            seen: list[str] = []

            def hook(name: str) -> None:
                seen.append(name)
                if len(seen) == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            set_hook(hook)
            PLAYED.run(folder)
            seen_path.write_text("\n".join(seen))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False, Counter()
    if status != 0:
        raise RuntimeError(f"the program ended with {status} when killed at {kill_at}")
    return True, Counter(seen_path.read_text().splitlines())


def go_on(folder: Path) -> None:
    """Let the program end. This process has nothing to do with the one that was killed, so it needs no other fork."""
    signal.alarm(TRIAL_SECONDS_MAX)
    PLAYED.run(folder)
    signal.alarm(0)


def one(root: Path, *kills: int) -> tuple[bool, Counter[str]]:
    """Kill, perhaps kill again while recovering, then let it end, and check everything."""
    folder = root / "-".join(map(str, kills))
    folder.mkdir()
    if URL:
        servers.empty(URL)
    ended = False
    seen: Counter[str] = Counter()
    for kill_at in kills:
        ended, seen = trial(folder, kill_at)
        if ended:
            break
    if not ended:
        go_on(folder)
    if PLAYED is schedule_scenario:
        checks.check_schedule(folder)
    elif PLAYED is bulk_scenario:
        checks.check_bulk(folder)
    elif PLAYED is fork_scenario:
        checks.check_fork(folder)
    elif PLAYED is asked_scenario:
        checks.check_asked(folder)
    elif PLAYED is patch_scenario:
        checks.check_patches(folder)
    elif PLAYED is graph_patch_scenario:
        checks.check_graph_patches(folder)
    elif PLAYED is move_scenario:
        checks.check_move(folder)
    else:
        checks.check(folder, PLAYED.STATUSES)
    shutil.rmtree(folder)
    return ended, seen


def single(root: Path, stride: int) -> dict[str, object]:
    points = 0
    while True:
        ended, seen = one(root, points * stride + 1)
        if ended:
            return {"points": points, "boundaries": dict(seen)}
        points += 1


def pairs(root: Path, count: int, seed: int) -> dict[str, object]:
    draw = random.Random(seed)
    ended, seen = one(root, NEVER)
    assert ended
    points = sum(seen.values())
    for _ in range(count):
        one(root, draw.randint(1, points), draw.randint(1, points))
    return {"points": points, "pairs": count}


def main() -> None:
    root = Path(sys.argv[1])
    (root / "warm").mkdir()
    PLAYED.run(root / "warm")  # imports everything once, so that each fork begins at once
    gc.collect()
    gc.freeze()  # or every fork would look through all of it for garbage, and copy every page it looks at
    numbers = [int(word) for word in sys.argv[4:]]
    found = single(root, *numbers) if sys.argv[3] == "single" else pairs(root, *numbers)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
