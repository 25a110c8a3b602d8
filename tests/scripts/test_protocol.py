"""What every script language promises: compiled once, inputs by name, JSON in and out, nothing kept between calls."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests import scale
from weft.errors import BadValue, LimitExceeded, UsageError
from weft.scripts import BadScript, ScriptFailed, compile_script, evaluate_predicate
from weft.scripts.compiler import COMPILERS
from weft.scripts.limits import CACHE_MAX, INPUTS_MAX

BOTH = pytest.mark.parametrize("language", ["lua", "ale"])
IDENTITY = {"lua": "return a", "ale": "a"}
SUM = {"lua": "return a + b", "ale": "(+ a b)"}


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -7,
        2**63 - 1,
        -(2**63),
        0.1,
        -2.5e-300,
        1e300,
        "",
        'naïve \u2028 😀 \t"\\/\n\x01\x7f',
        [1, "two", [3.5, False]],
        [[], [[]]],
        ["\\u0041", "\\", '"', "a\\"],
        [{"b": [1, {"c": "d"}]}, {}],
    ],
    ids=repr,
)
def test_a_value_comes_out_as_it_went_in(language: str, value: Any) -> None:
    outputs = compile_script(language, IDENTITY[language], ["a"]).call({"a": value})

    assert outputs == {"result": value}
    assert type(outputs["result"]) is type(value)


@BOTH
def test_an_object_becomes_the_outputs(language: str) -> None:
    value = {"total": 4, "lines": [{"a": 1.5}], "empty": {}}

    assert compile_script(language, IDENTITY[language], ["a"]).call({"a": value}) == value


@BOTH
def test_a_missing_input_is_null_and_others_are_not_seen(language: str) -> None:
    script = compile_script(language, IDENTITY[language], ["a"])

    assert script.call({}) == {"result": None}
    assert script.call({"b": 1}) == {"result": None}


@BOTH
def test_inputs_are_bound_by_name_whatever_their_order(language: str) -> None:
    source = {"lua": "return {a - b, c}", "ale": "[(- a b) c]"}[language]
    script = compile_script(language, source, ["c", "a", "b", "a"])

    assert script.inputs == ("a", "b", "c")
    assert script.call({"b": 1, "c": 3, "a": 5}) == {"result": [4, 3]}


@BOTH
def test_the_value_itself_can_be_had(language: str) -> None:
    script = compile_script(language, SUM[language], ["a", "b"])

    assert script.evaluate({"a": 1, "b": 2}) == 3


@BOTH
def test_outputs_are_not_the_inputs(language: str) -> None:
    given = {"a": {"list": [1]}}
    outputs = compile_script(language, IDENTITY[language], ["a"]).call(given)
    outputs["list"].append(2)

    assert given == {"a": {"list": [1]}}


@pytest.mark.parametrize(
    ("language", "source", "holds"),
    [
        ("lua", "return 0", True),
        ("lua", "return ''", True),
        ("lua", "return {}", True),
        ("lua", "return false", False),
        ("lua", "return nil", False),
        ("lua", "local x = 1", False),
        ("lua", "return a > 1 and b", True),
        ("lua", "return function() end", True),
        ("ale", "0", True),
        ("ale", '""', True),
        ("ale", "null", True),
        ("ale", "[]", True),
        ("ale", "false", False),
        ("ale", "(> 1 a)", False),
        ("ale", "(lambda (x) x)", True),
    ],
)
def test_a_predicate_is_true_as_its_language_has_it(language: str, source: str, holds: bool) -> None:
    assert evaluate_predicate(language, source, {"a": 2, "b": "yes"}) is holds
    assert compile_script(language, source, ["a", "b"]).holds({"a": 2, "b": "yes"}) is holds


@pytest.mark.parametrize(("language", "source"), [("lua", "return a.b.c"), ("ale", "(:b a)"), ("lua", "error('no')")])
def test_a_predicate_that_fails_is_no_answer(language: str, source: str) -> None:
    with pytest.raises(ScriptFailed):
        evaluate_predicate(language, source, {"a": 1})


@BOTH
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, object(), "\ud800"], ids=["nan", "inf", "set", "object", "surrogate"]
)
def test_what_is_not_json_is_refused_by_name(language: str, value: Any) -> None:
    script = compile_script(language, IDENTITY[language], ["a"])

    with pytest.raises(BadValue, match="field `a"):
        script.call({"a": {"deep": value}})


# Refusals


@pytest.mark.parametrize(
    ("language", "source", "line", "reason"),
    [
        ("lua", "local x = 1\nreturn x +", 2, "unexpected symbol near <eof>"),
        ("lua", "return a\nb", 2, "<eof> expected near 'b'"),
        ("lua", "goto nowhere", 1, "no visible label 'nowhere'"),
        ("ale", "(+ 1\n  (foo 2))", 2, "there is no name `foo`"),
        ("ale", "(+ 1 2", 1, "`(` is never closed"),
        ("ale", "(+ 1 2))", 1, "`)` has no opening bracket"),
        ("ale", "1\n[1 2)", 2, "`)` has no opening bracket; `]` is expected"),
        ("ale", '\n"abc', 2, "a string is never closed"),
        ("ale", "{:a}", 1, "an object needs a value for every key"),
        ("ale", "(mod 1)", 1, "`mod` takes 2 arguments, not 1"),
        ("ale", "(if)", 1, "the form is incomplete"),
        ("ale", "; nothing", None, "only comments"),
        ("ale", "12abc", 1, "'12abc' is not a number"),
    ],
)
def test_a_bad_text_is_refused_with_its_line(language: str, source: str, line: int | None, reason: str) -> None:
    with pytest.raises(BadScript) as caught:
        compile_script(language, source, ["a"])

    assert caught.value.line == line
    assert reason in caught.value.reason
    assert caught.value.language == language
    assert reason in str(caught.value)


@BOTH
@pytest.mark.parametrize("source", ["", "   \n", "\ud800", "x" * 70_000])
def test_a_text_that_is_none_is_refused(language: str, source: str) -> None:
    with pytest.raises(BadScript):
        compile_script(language, source, [])


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("lua", "order-id"),
        ("lua", "end"),
        ("lua", "_ENV"),
        ("lua", "1st"),
        ("lua", "größe"),
        ("ale", "a b"),
        ("ale", "null"),
        ("ale", "1st"),
    ],
)
def test_a_name_that_the_language_cannot_have_is_refused(language: str, name: str) -> None:
    with pytest.raises(BadScript, match="Rename the input") as caught:
        compile_script(language, "1", [name])

    assert repr(name) in caught.value.reason


@BOTH
def test_too_many_inputs_are_refused(language: str) -> None:
    names = [f"n{i}" for i in range(INPUTS_MAX + 1)]

    with pytest.raises(BadScript, match="151 inputs"):
        compile_script(language, IDENTITY[language], names)
    assert compile_script(language, IDENTITY[language], ["a", *names[2:]]).call({"a": 1}) == {"result": 1}


def test_an_unknown_language_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadScript, match="The languages are ale and lua"):
        compile_script("javascript", "1", [])
    with pytest.raises(BadScript, match="Did you mean `lua`"):
        compile_script("luau", "1", [])


def test_a_value_without_return_gets_a_hint() -> None:
    with pytest.raises(BadScript, match="Write `return` before the value"):
        compile_script("lua", "a > 1", ["a"])


@BOTH
def test_a_failure_names_its_line(language: str) -> None:
    source = {"lua": "local x = 1\nreturn x + a.b", "ale": "(str 1\n  (+ 1 (:b a)))"}[language]

    with pytest.raises(ScriptFailed) as caught:
        compile_script(language, source, ["a"]).call({"a": {}})
    assert caught.value.line == 2


@BOTH
def test_a_limit_is_typed_and_says_which(language: str) -> None:
    source = {"lua": "while true do end", "ale": "(map (lambda (x) (map inc (range 9999))) (range 9999))"}[language]

    with pytest.raises(LimitExceeded) as caught:
        compile_script(language, source, []).call({})
    assert caught.value.code == "script.limit"
    assert caught.value.context["limit"] in {"steps", "memory", "time"}


# The cache


@BOTH
def test_the_same_text_and_inputs_are_compiled_once(language: str) -> None:
    script = compile_script(language, SUM[language], ["a", "b"])

    assert compile_script(language, SUM[language], ["b", "a"]) is script
    assert compile_script(language, SUM[language], ["a", "b", "c"]) is not script


@BOTH
def test_the_cache_keeps_the_latest_of_its_size_per_language(language: str) -> None:
    compiler: Any = COMPILERS[language]
    compiler.cache_clear()
    texts = [f"{'return ' if language == 'lua' else ''}{n}" for n in range(CACHE_MAX + 10)]
    first = compile_script(language, texts[0], [])
    for text in texts[1:-10]:
        compile_script(language, text, [])
    assert compile_script(language, texts[0], []) is first  # and so it is the latest again
    for text in texts[-10:]:
        compile_script(language, text, [])

    assert compiler.cache_info().currsize == CACHE_MAX == 1_024
    assert compile_script(language, texts[0], []) is first
    missed = compiler.cache_info().misses
    assert compile_script(language, texts[1], []).call({}) == {"result": 1}
    assert compiler.cache_info().misses == missed + 1


def test_a_refusal_is_not_cached() -> None:
    for _ in range(2):
        with pytest.raises(BadScript):
            compile_script("ale", "(no", [])


# Threads and event loops


@pytest.mark.parametrize("count", scale.first(1, [6, 24]))
@BOTH
def test_threads_do_not_see_each_other(language: str, count: int) -> None:
    source = {
        "lua": "x = a local n = 0 for i = 1, 2000 do n = n + x end return {n = n, x = x}",
        "ale": "(let* ([x a]) {:n (reduce + (map (lambda (i) x) (range 2000))) :x x})",
    }[language]
    script = compile_script(language, source, ["a"])
    wrong: list[Any] = []

    def work(a: int) -> None:
        wrong.extend(out for _ in range(20) if (out := script.call({"a": a})) != {"n": 2000 * a, "x": a})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@BOTH
def test_calls_run_beside_an_event_loop(language: str) -> None:
    async def main() -> None:
        script = compile_script(language, SUM[language], ["a", "b"])
        outputs = await asyncio.gather(*(script.acall({"a": n, "b": 1}) for n in range(50)))
        assert outputs == [{"result": n + 1} for n in range(50)]
        assert await script.aholds({"a": 1, "b": 1})
        assert await script.aevaluate({"a": 1, "b": 1}) == 2
        with pytest.raises(ScriptFailed):
            await script.acall({"a": "x", "b": []})

    asyncio.run(main())


def test_an_endless_script_does_not_hold_the_event_loop() -> None:
    async def main() -> int:
        endless = asyncio.create_task(compile_script("lua", "while true do end", []).acall({}))
        turns = 0
        while not endless.done():
            await asyncio.sleep(0)
            turns += 1
        with pytest.raises(LimitExceeded):
            await endless
        return turns

    assert asyncio.run(main()) > 10


# Without the extra


def test_without_lupa_ale_works_and_lua_says_what_to_install() -> None:
    program = """
import sys
sys.modules["lupa"] = None
from weft.errors import UsageError
from weft.scripts import compile_script
print(compile_script("ale", "(+ 1 1)", []).call({}))
try:
    compile_script("lua", "return 1", [])
except UsageError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)

    said = 'A script in Lua needs packages that are not installed: lupa. Install them: pip install "weft[lua]"'
    assert ran.stdout.splitlines() == ["{'result': 2}", said]
    assert issubclass(BadScript, UsageError)
