"""Kill the program at its n-th boundary, for every n, and go on; then kill the recovery too.

Runs as a program of its own, without threads, so that each trial is a fork: ``python -m tests.crash.sweep FOLDER code
single 1`` goes through all single points (``single 3`` through every third), ``pairs N SEED`` through N pairs (first
kill, then a kill during the recovery), ``named NAME...`` through the boundaries with these names; ``graph``, ``goal``,
``schedule``, ``start``, ``bulk``, ``hook``, ``fork``, ``patch`` (of code runs), ``graph-patch``, ``set``, ``move``,
``import``, ``delete`` and ``agent`` instead of ``code`` play those. ``takeover 3`` is ``single 3`` with another host
beside the one that is killed, which goes on with its runs; only an agent can be played so, and only in Postgres.
``WEFT_CRASH_URL`` names a database of Postgres, which is emptied before each trial; else every trial has a file.
``WEFT_CRASH_REDIS`` puts a write-ahead log before it, with the policy ``WEFT_CRASH_HOT``.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import weft
from tests import servers
from tests.crash import (
    agent_scenario,
    asked_scenario,
    bulk_scenario,
    checks,
    delete_scenario,
    fork_scenario,
    goal_scenario,
    graph_patch_scenario,
    graph_scenario,
    hook_scenario,
    import_scenario,
    move_scenario,
    patch_scenario,
    scenario,
    schedule_scenario,
    set_scenario,
    start_scenario,
)
from weft.ports.boundary import set_hook

NEVER = 10**9
TRIAL_SECONDS_MAX = 120
TRIES = 8
"""How often a program is played that ended too early."""
SCENARIOS: dict[str, tuple[Any, Callable[[Path], None]]] = {
    "code": (scenario, lambda folder: checks.check(folder, scenario.STATUSES)),
    "goal": (goal_scenario, lambda folder: checks.check(folder, goal_scenario.STATUSES)),
    "graph": (graph_scenario, lambda folder: checks.check(folder, graph_scenario.STATUSES)),
    "schedule": (schedule_scenario, checks.check_schedule),
    "start": (start_scenario, checks.check_starts),
    "bulk": (bulk_scenario, checks.check_bulk),
    "hook": (hook_scenario, checks.check_hooks),
    "fork": (fork_scenario, checks.check_fork),
    "asked": (asked_scenario, checks.check_asked),
    "patch": (patch_scenario, checks.check_patches),
    "graph-patch": (graph_patch_scenario, checks.check_graph_patches),
    "set": (set_scenario, checks.check_set),
    "move": (move_scenario, checks.check_move),
    "import": (import_scenario, checks.check_import),
    "delete": (delete_scenario, checks.check_delete),
    "agent": (agent_scenario, checks.check_agent),
}
URL = os.environ.get("WEFT_CRASH_URL")
REDIS = os.environ.get("WEFT_CRASH_REDIS")
PLAYED, check = SCENARIOS[sys.argv[2]]


class KillAt(NamedTuple):
    """Kill at the n-th boundary with a name, or at the n-th of all."""

    count: int
    name: str = ""


def play(folder: Path, *given: Path) -> None:
    """Play the program to its end.

    With so short a lease, Postgres cuts a session whose process got no time for a tenth of a second. The program ends
    then, as it does when it is killed, and is started again.
    """
    for left in reversed(range(TRIES)):
        try:
            PLAYED.run(folder, *given)
        except weft.StoreError:
            if not (URL and left):
                raise
            traceback.print_exc()
        else:
            return


def trial(folder: Path, kill_at: KillAt) -> tuple[bool, Counter[str]]:
    """Run the program in a fork and kill it at a boundary.

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
            left = kill_at.count

            def hook(name: str) -> None:
                nonlocal left
                seen.append(name)
                left -= kill_at.name in {"", name}
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            set_hook(hook)
            play(folder)
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
    play(folder)
    signal.alarm(0)


def _stand_by(folder: Path, over: Path) -> NoReturn:
    """Host beside the program that is killed, and let it end when that program is over. Ends this process."""
    code = 1
    try:
        signal.alarm(2 * TRIAL_SECONDS_MAX)
        play(folder, over)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def one(root: Path, *kills: KillAt, has_standby: bool = False) -> tuple[bool, Counter[str]]:
    """Kill, perhaps kill again while recovering, then let it end, and check everything."""
    folder = root / "-".join(f"{kill.name}{kill.count}" for kill in kills)
    folder.mkdir()
    if URL:
        servers.empty(URL)
    over = folder / "over"
    standby = os.fork() if has_standby else None
    if standby == 0:
        _stand_by(folder, over)
    ended = False
    seen: Counter[str] = Counter()
    for kill_at in kills:
        ended, seen = trial(folder, kill_at)
        if ended:
            break
    if standby is not None:
        over.touch()
        assert os.waitpid(standby, 0)[1] == 0, f"the other host did not go on after {kills}"
    elif not ended:
        go_on(folder)
    check(folder)
    if REDIS:
        checks.check_wals(folder)
    shutil.rmtree(folder)
    return ended, seen


def single(root: Path, stride: int, *, has_standby: bool = False) -> dict[str, object]:
    points = 0
    while True:
        ended, seen = one(root, KillAt(points * stride + 1), has_standby=has_standby)
        if ended:
            return {"points": points, "boundaries": dict(seen), "ends": dict(checks.ENDS)}
        points += 1


def pairs(root: Path, count: int, seed: int) -> dict[str, object]:
    draw = random.Random(seed)
    ended, seen = one(root, KillAt(NEVER))
    assert ended
    points = sum(seen.values())
    for _ in range(count):
        one(root, KillAt(draw.randint(1, points)), KillAt(draw.randint(1, points)))
    return {"points": points, "pairs": count}


def named(root: Path, *names: str) -> dict[str, object]:
    """Kill at the first boundary of each name and at one in the middle; those of a takeover after a kill amid hops."""
    of_program = {name for name in names if not name.startswith("takeover.")}
    for _ in range(TRIES):
        ended, seen = one(root, KillAt(NEVER))
        assert ended
        if all(seen[name] for name in of_program):
            break
    hops, kills = seen["wal.after"], 0
    for name in names:
        first = [] if name in of_program else [KillAt(hops // 2, "wal.after")]
        passed = seen[name] if name in of_program else 1
        assert passed, f"the program never passes {name}"
        for count in sorted({1, max(1, passed // 2)}):
            is_killed = any(not one(root, *first, KillAt(count, name))[0] for _ in range(TRIES))
            assert is_killed, f"nothing was killed at {name} {count}"
            kills += 1
    return {"hops": hops, "kills": kills}


def main() -> None:
    root = Path(sys.argv[1])
    (root / "warm").mkdir()
    play(root / "warm")  # imports everything once, so that each fork begins at once
    gc.collect()
    gc.freeze()  # or every fork would look through all of it for garbage, and copy every page it looks at
    words = sys.argv[4:]
    if sys.argv[3] == "named":
        found = named(root, *words)
    elif sys.argv[3] == "pairs":
        found = pairs(root, *map(int, words))
    else:
        found = single(root, int(words[0]), has_standby=sys.argv[3] == "takeover")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
