"""Whatever a script tries, it ends in a typed error within two seconds and a hundred megabytes."""

import json
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import scale
from tests.scripts.attacks import ATTACKS, SHORT
from weft.errors import WeftError
from weft.scripts import compile_script
from weft.scripts.ale.procedures import PROCEDURES

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 20.0  # of the processor: ten times as much as on a usual machine
MEGABYTES_MAX = 100


PARTS = {
    ("lua", "short"): SHORT["lua"],
    ("lua", "long"): ATTACKS["lua"].keys() - SHORT["lua"],
    ("ale", "long"): ATTACKS["ale"].keys(),
}


@pytest.mark.parametrize("step", [pytest.param(7, id="sample"), pytest.param(1, id="all", marks=pytest.mark.proof)])
@pytest.mark.parametrize(
    ("language", "clock"),
    [pytest.param(*part, marks=pytest.mark.proof if part[0] == "lua" else ()) for part in PARTS],
)
def test_an_attack_ends_in_a_typed_error_in_time_and_takes_little_memory(language: str, clock: str, step: int) -> None:
    """One after the other, in one process of their own."""
    names = [name for name in ATTACKS[language] if name in PARTS[language, clock]][::step]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.scripts.attacks", language, clock, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found: dict[str, tuple[str, float, int]] = json.loads(ran.stdout)

    assert {name: ended for name, (ended, *_) in found.items()} == {
        name: ATTACKS[language][name].ends for name in names
    }
    assert not {name: cpu for name, (_, cpu, _) in found.items() if cpu >= SECONDS_MAX}
    assert not {name: kb for name, (*_, kb) in found.items() if kb >= MEGABYTES_MAX * 1024}


def test_every_attack_is_made() -> None:
    for language, attacks in ATTACKS.items():
        assert set().union(*(names for (of, _), names in PARTS.items() if of == language)) == attacks.keys()


@pytest.mark.parametrize("language", ATTACKS)
def test_there_are_many_attacks(language: str) -> None:
    assert len(ATTACKS[language]) >= 40


LUA_VALUES = [
    "nil",
    "0",
    "-1",
    "1",
    "3.5",
    "math.huge",
    "math.mininteger",
    "''",
    "'a%b(c'",
    "('x'):rep(3000)",
    "t",
    "f",
    "s",
    "...",
]
LUA_CALLS = [
    f"{library}.{name}"
    for library, names in {
        "string": "byte char find format gmatch gsub len lower match rep reverse sub upper",
        "table": "concat insert move pack remove sort unpack",
        "utf8": "char codepoint codes len offset",
        "math": "floor fmod tointeger type abs max",
    }.items()
    for name in names.split(" ")
] + ["pairs", "ipairs", "next", "select", "tostring", "tonumber", "pcall", "error", "assert", "type", "array"]
ALE_VALUES = ["null", "0", "-1", "1/3", "2.5", '""', '"text"', ":a", "[]", "[1 [2]]", "{:a 1}", "t", "o", "f", "map"]
ALE_CALLS = sorted(PROCEDURES)


def lua_program(draw: random.Random) -> str:
    def value(depth: int) -> str:
        if depth == 0 or draw.random() < 0.4:
            return draw.choice(LUA_VALUES)
        call = f"{draw.choice(LUA_CALLS)}({', '.join(value(depth - 1) for _ in range(draw.randrange(4)))})"
        # What fails inside must not end what stands around it, or little would ever run.
        return call if depth > 1 else f"select(2, pcall(function(...) return {call} end, ...))"

    lines = [f"pcall(function(...) s = {value(3)} t[#t + 1] = {value(2)} end, {value(1)})" for _ in range(6)]
    result = f"{{pcall(function(...) return tostring({value(3)}) end)}}"
    return f"local t, s = {{}}, 'xyz' local function f(...) return ... end {' '.join(lines)} return {result}"


def ale_program(draw: random.Random) -> str:
    def value(depth: int) -> str:
        if depth == 0 or draw.random() < 0.2:
            return draw.choice(ALE_VALUES)
        called = PROCEDURES[draw.choice(ALE_CALLS)]
        most = called.arguments_min + 2 if called.arguments_max is None else called.arguments_max
        count = draw.randint(called.arguments_min, most)
        call = f"({called.name} {' '.join(value(depth - 1) for _ in range(count))})"
        return f"(try {call} (catch [e] {draw.choice(ALE_VALUES)}))"

    values = " ".join(value(4) for _ in range(4))
    return f"(let* ([f (lambda (x . y) x)] [o {{:a [1 2] :b {{}}}}] [t [1 2 3]]) (str [{values}]))"


PROGRAMS = {"lua": lua_program, "ale": ale_program}


def ended(language: str, source: str) -> Any:
    try:
        return compile_script(language, source, []).call({})
    except WeftError as error:
        return str(error)


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("seed", scale.first(2, range(10)))
def test_nonsense_neither_hangs_nor_crashes_and_ends_the_same_way_twice(language: str, seed: int) -> None:
    draw, results = random.Random(seed), 0
    for _ in range(60):
        source = PROGRAMS[language](draw)
        first = ended(language, source)
        assert ended(language, source) == first, source
        results += isinstance(first, dict)

    assert results > 30  # or the nonsense would be refused before it runs


def test_an_attack_in_one_thread_does_not_disturb_another() -> None:
    endless, small = compile_script("lua", "while true do end", []), compile_script("lua", "return a + 1", ["a"])
    attacks = [threading.Thread(target=lambda: suppressing(endless)) for _ in range(3)]
    for thread in attacks:
        thread.start()

    assert [small.call({"a": n})["result"] for n in range(200)] == list(range(1, 201))
    for thread in attacks:
        thread.join()


def suppressing(script: Any) -> None:
    with suppress(WeftError):
        script.call({})
