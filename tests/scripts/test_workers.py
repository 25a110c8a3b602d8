"""Patterns that nothing can interrupt run in a process that is killed in time, replaced, and gone at the end."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from weft.errors import LimitExceeded
from weft.scripts import compile_script
from weft.scripts.limits import WALL_S_MAX
from weft.scripts.lua import workers
from weft.scripts.lua.state import LuaOutcome, LuaState, Patterns

# Too long for this process, short enough for the other one.
SCRIPT = compile_script("lua", "return {s:find('x-y-z'), s:match('(a+)b'), n = n}", ["s", "n"])
GIVEN = {"s": "a" * 3_000 + "b", "n": 1}
SOURCE = "local n = 0 for w in s:gmatch('%a+%s*') do n = n + 1 end return {n, (s:gsub('(%a+) (%a+)', '%2 %1'))}"
HANG = compile_script("lua", "return s:find('.-.-.-.-.-b')", ["s"])


def workers_alive() -> list[int]:
    return [worker.process.pid for worker in workers.POOL.idle]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still for a second fails no call."""
    monkeypatch.setattr(workers, "WALL_S_MAX", 60.0)


@pytest.fixture(autouse=True)
def fresh() -> Any:
    workers.POOL.close()
    yield
    workers.POOL.close()


def test_a_script_cannot_tell_where_it_ran() -> None:
    script = compile_script("lua", SOURCE, ["s"])
    here, there = "one two " * 5, "one two " * 500
    assert script.call({"s": here})["result"][0] == 10
    assert not workers_alive()

    assert script.call({"s": there})["result"] == [1_000, "two one " * 500]
    assert len(workers_alive()) == 1


def test_short_patterns_do_not_start_a_process() -> None:
    script = compile_script("lua", "return s:match('^(%w+)@(%w+)%.%w+$') and s:gsub('%s+', ' ')", ["s"])

    assert script.call({"s": "someone@example.org"}) == {"result": "someone@example.org"}
    assert not workers_alive()


def test_a_worker_is_kept_for_the_next_call() -> None:
    SCRIPT.holds(GIVEN)
    first = workers_alive()
    SCRIPT.holds(GIVEN)

    assert workers_alive() == first


def test_a_worker_that_takes_too_long_is_killed_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    SCRIPT.holds(GIVEN)
    (first,) = workers_alive()
    with monkeypatch.context() as patch, pytest.raises(LimitExceeded, match="too long"):
        patch.setattr(workers, "WALL_S_MAX", WALL_S_MAX)
        HANG.call({"s": "a" * 3_000})

    assert not workers_alive()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert SCRIPT.holds(GIVEN)


def test_a_worker_killed_by_other_hands_is_replaced_without_a_word() -> None:
    SCRIPT.holds(GIVEN)
    (first,) = workers_alive()
    os.kill(first, signal.SIGKILL)

    assert SCRIPT.holds(GIVEN)
    assert workers_alive() != [first]


def test_nothing_is_left_between_calls_in_a_worker() -> None:
    leave = compile_script("lua", "seen = 1 return s:match('(a+)b') and 1", ["s"])
    look = compile_script("lua", "return {seen == nil, s:match('(a+)b') ~= nil}", ["s"])
    leave.call({"s": GIVEN["s"]})

    assert look.call({"s": GIVEN["s"]}) == {"result": [True, True]}


def test_many_threads_share_few_workers() -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(SCRIPT.holds(GIVEN))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [True] * 12
    assert 1 <= len(workers_alive()) <= workers.WORKERS_MAX


def test_errors_and_limits_come_back_from_a_worker() -> None:
    failing = compile_script("lua", "local x = s:match('(a+)b')\nerror('after ' .. #x)", ["s"])
    endless = compile_script("lua", "local x = s:match('(a+)b') while true do end", ["s"])

    with pytest.raises(Exception, match="line 2: after 3000"):
        failing.call({"s": GIVEN["s"]})
    with pytest.raises(LimitExceeded, match="too many steps"):
        endless.call({"s": GIVEN["s"]})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that this process has threads is the point
def test_a_forked_child_starts_its_own() -> None:
    SCRIPT.holds(GIVEN)
    before = workers_alive()
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = not workers_alive() and SCRIPT.holds(GIVEN) and workers_alive() != before
            workers.POOL.close()
        finally:
            os._exit(0 if good else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert SCRIPT.holds(GIVEN)
    assert workers_alive() == before


PROGRAM = """
import sys
from weft.scripts import compile_script
from weft.scripts.lua import workers
script = compile_script("lua", "return s:match('(a+)b') ~= nil", ["s"])
assert script.holds({"s": "a" * 3000 + "b"})
print(workers.POOL.idle[0].process.pid, flush=True)
if "wait" in sys.argv:
    sys.stdin.read()
"""


def gone(pid: int) -> bool:
    """Whether the process ends; a child of a dead parent is somebody else's to bury."""
    end = time.monotonic() + 200
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
    return False


def test_workers_end_with_the_interpreter_and_leave_no_warning() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert not ran.stderr
    assert gone(int(ran.stdout))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_workers_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()

    assert gone(worker)


def test_a_machine_with_all_patterns_gives_what_the_other_gives() -> None:
    bounded, unbounded = LuaState(Patterns.BOUNDED), LuaState(Patterns.ALL)
    for pattern in ("%a+", "^%s*(.-)%s*$", "(%w)(%w)%2", "%b()", "%f[%w]%w+", "[^%]]+", "b*c-d"):
        text = f"return {{('  (abc) bccd] 12 '):find('{pattern}')}}"
        assert bounded.run(text, b"[]", truth=False) == unbounded.run(text, b"[]", truth=False)
    assert bounded.run("return ('a'):rep(3000):find('a-a-b')", b"[]", truth=False) == LuaOutcome(
        "limit", b"elsewhere", 0
    )
