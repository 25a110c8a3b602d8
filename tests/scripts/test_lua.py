"""Lua scripts: the language without its doors, the same on every machine, and nothing left when a call ends."""

import os
import subprocess
import sys
from typing import Any

import pytest

from weft.errors import LimitExceeded
from weft.scripts import ScriptFailed, compile_script


def value(source: str, **given: Any) -> Any:
    return compile_script("lua", source, list(given)).evaluate(given)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("return 1 + 2 * 3", 7),
        ("return 7 // 2, 8", 3),
        ("return 7 / 2", 3.5),
        ("return 10 / 2", 5.0),
        ("return 2 ^ 10", 1024.0),
        ("return 5 % 3 .. ''", "2"),
        ("return 1 << 4 | 1", 17),
        ("return #'abc' == 3 and not nil", True),
        ("local a <const> = 1 return a", 1),
        ("local n = 0 for i = 1, 10 do if i % 2 == 0 then goto on end n = n + i ::on:: end return n", 25),
        ("local n = 0 repeat n = n + 1 until n > 4 return n", 5),
        ("local function f(n) return n < 2 and 1 or n * f(n - 1) end return f(10)", 3628800),
        (
            "local function f(...) return select('#', ...), ... end local n, a = f(nil, 2) return {n, a or 'nil'}",
            [2, "nil"],
        ),
        ("x = 1 y = x + 1 return y", 2),
        ("return _ENV.nothing == nil", True),
        ("return nil", None),
        ("local x = 1", None),
    ],
)
def test_the_language_is_lua(source: str, result: Any) -> None:
    assert value(source) == result
    assert type(value(source)) is type(result)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("return ('Ab'):upper() .. ('Ab'):lower() .. ('abc'):reverse() .. ('x'):rep(3, '-')", "ABabcbax-x-x"),
        ("return ('hello'):sub(2, -2) .. ('A'):byte() .. string.char(66) .. ('abc'):len()", "ell65B3"),
        ("return {('key = value'):match('^(%w+)%s*=%s*(%w+)$')}", ["key", "value"]),
        ("return {('a.b'):find('.', 1, true)}", [2, 2]),
        ("return (('2024-05-06'):gsub('(%d+)-(%d+)-(%d+)', '%3.%2.%1'))", "06.05.2024"),
        ("return (('a b'):gsub('%w', {a = 'x'}))", "x b"),
        ("return (('abc'):gsub('%w', function(c) return c .. c end))", "aabbcc"),
        ("local t = {} for w in ('one two'):gmatch('%a+') do t[#t + 1] = w end return t", ["one", "two"]),
        ("return string.format('%5.2f|%d|%s|%q|%%p', 1.005, 3, true, 'x')", ' 1.00|3|true|"x"|%p'),
        ("return string.format('%s %s', {}, print or type)", "table function"),
        ("return utf8.char(228, 8364) .. utf8.len('äö') .. utf8.codepoint('ä')", "ä€2228"),
        ("return tostring(1.5) .. tostring({}) .. tostring(nil) .. tostring(type)", "1.5tablenilfunction"),
        ("return {tonumber('0x10'), tonumber('z', 36), tonumber('1e1'), tonumber('x') or 'no'}", [16, 35, 10.0, "no"]),
        (
            "return {math.floor(3.7), math.max(1, 5), math.type(1), math.tointeger(3.0), math.abs(-1)}",
            [3, 5, "integer", 3, 1],
        ),
        ("return math.pi > 3 and math.maxinteger", 2**63 - 1),
    ],
)
def test_text_and_numbers_have_their_libraries(source: str, result: Any) -> None:
    assert value(source) == result


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) return t", [0, 1, 2, 3]),
        ("local t = {1, 2, 3} return {table.remove(t), table.remove(t, 1), #t}", [3, 1, 1]),
        ("return table.concat({1, 'a', 2.5}, ',')", "1,a,2.5"),
        ("return {table.unpack({1, 2, 3}, 2)}", [2, 3]),
        ("return table.pack(1, nil).n", 2),
        ("return table.move({1, 2, 3}, 1, 3, 2)", [1, 1, 2, 3]),
        ("return table.move({1, 2, 3}, 2, 3, 1)", [2, 3, 3]),
        ("return table.move({1, 2}, 1, 2, 1, {9, 9, 9})", [1, 2, 9]),
        ("local t = {3, 1, 2} table.sort(t) return t", [1, 2, 3]),
        ("local t = {'b', 'a'} table.sort(t, function(a, b) return a > b end) return t", ["b", "a"]),
        ("local t = {} for i = 100, 1, -1 do t[#t + 1] = i end table.sort(t) return t", list(range(1, 101))),
    ],
)
def test_lists_have_their_library(source: str, result: Any) -> None:
    assert value(source) == result


def test_sorting_keeps_the_order_of_equals() -> None:
    source = "table.sort(a, function(x, y) return x.k < y.k end) return a"
    rows = [{"k": n % 3, "n": n} for n in range(200)]

    assert value(source, a=rows) == sorted(rows, key=lambda row: row["k"])


@pytest.mark.parametrize("walk", ["pairs(t)", "next, t"])
def test_tables_are_walked_in_the_same_order_everywhere(walk: str) -> None:
    table = "{b = 1, a = 2, [3] = 3, [1] = 4, [true] = 5, [false] = 6, [-1.5] = 7}"
    source = f"local t, s = {table}, {{}} for k, v in {walk} do s[#s + 1] = tostring(k) .. v end return s"

    assert value(source) == ["-1.57", "14", "33", "a2", "b1", "false6", "true5"]


def test_what_is_removed_while_walking_is_not_seen() -> None:
    source = "local n = 0 for k in pairs(t) do n = n + 1 t[k] = nil t.z = nil end return n"

    assert value(source, t={"a": 1, "b": 2, "z": 3}) == 2


def test_going_through_a_table_with_next_is_not_quadratic() -> None:
    source = "local n = 0 for k, v in next, t do n = n + v end return n"

    assert value(source, t={f"k{n}": 1 for n in range(20_000)}) == 20_000


def test_keys_without_an_order_cannot_be_walked() -> None:
    with pytest.raises(ScriptFailed, match="no order"):
        value("for k in pairs({[{}] = 1}) do end")


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("return {pcall(error, 'no', 0)}", [False, "no"]),
        ("local ok, e = pcall(function() error({code = 7}) end) return e.code", 7),
        (
            "return (select(2, pcall(function() local x = nil; return x.y end))):match('attempt.*')",
            "attempt to index a nil value (local 'x')",
        ),
        ("return {pcall(function(...) return ... end, 1, 2)}", [True, 1, 2]),
        ("return select(2, pcall(assert, false, 'said'))", "said"),
    ],
)
def test_a_script_can_catch_its_own_errors(source: str, result: Any) -> None:
    assert value(source) == result


@pytest.mark.parametrize(
    ("source", "said", "line"),
    [
        ("error('no stock')", "no stock", 1),
        ("\n\nerror('no stock', 0)", "no stock", 3),
        ("\nerror({code = 7})", 'it raised {"code":7}', 2),
        ("error(nil)", "it raised nil", 1),
        ("\nlocal x = ('x'):rep({})", "bad argument #2 to 'rep' (number expected, got table)", 2),
        ("local t = {}\ntable.insert(t, 5, 1)", "position out of bounds", 2),
        ("table.sort({1, 'a'})", "attempt to compare", 1),
        ("\nstring.upper()", "bad argument #1 to 'upper'", 2),
        ("('x'):find()", "bad argument #2 to 'find' (string expected, got no value)", 1),
        ("os.exit()", "attempt to index a nil value (global 'os')", 1),
    ],
)
def test_a_failure_says_what_and_where(source: str, said: str, line: int) -> None:
    with pytest.raises(ScriptFailed) as caught:
        value(source)

    assert said in caught.value.reason
    assert caught.value.line == line


# Values


@pytest.mark.parametrize(
    ("source", "outputs"),
    [
        ("return {}", {}),
        ("return array({})", {"result": []}),
        ("return {items = array({}), more = array{1}}", {"items": [], "more": [1]}),
        ("return {1, nil, 3}", {"result": [1, None, 3]}),
        ("return {a = nil, b = 1}", {"b": 1}),
        ("return {['a b'] = 1, ['ä'] = 2}", {"a b": 1, "ä": 2}),
        ("return 1, 2, 3", {"result": 1}),
        ("return {1.0, 2}", {"result": [1.0, 2]}),
    ],
)
def test_tables_become_objects_or_arrays(source: str, outputs: Any) -> None:
    assert compile_script("lua", source, []).call({}) == outputs


def test_an_array_that_a_script_empties_stays_an_array() -> None:
    assert value("table.remove(a) return {a}", a=[1]) == [[]]
    assert value("return {a, b}", a=[], b={}) == [[], {}]


def test_null_is_nil() -> None:
    assert value(
        "return {a == nil, b.x == nil, b.y, c[2] == nil, c[3]}", a=None, b={"x": None, "y": 1}, c=[1, None, 3]
    ) == [True, True, 1, True, 3]
    assert value("return a", a=[None, 1, None, 2]) == [None, 1, None, 2]


def test_objects_are_written_with_sorted_keys() -> None:
    outputs = compile_script("lua", "return {z = 1, a = 2, m = {y = 1, b = 2}}", []).call({})

    assert list(outputs) == ["a", "m", "z"]
    assert list(outputs["m"]) == ["b", "y"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("return {a = {1, {b = function() end}}}", "a function (at `a[2].b`)"),
        ("return {1, a = 2}", "both names and positions"),
        ("return {[0] = 1}", "neither a name nor a position"),
        ("return {[1.5] = 1}", "neither a name nor a position"),
        ("return {x = 0/0}", "nan"),
        ("return -1/0", "infinite"),
        ("return '\\xff'", "UTF-8"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(source: str, said: str) -> None:
    with pytest.raises(ScriptFailed) as caught:
        value(source)

    assert said in caught.value.reason


# Nothing is left


@pytest.mark.parametrize(
    "change",
    [
        "seen = 1",
        "_ENV.seen = 1",
        "pcall(function() string.seen = 1 end)",
        "pcall(function() function string:seen() end end)",
        "pcall(function() math.seen = 1 end)",
        "pcall(function() table.insert = nil end)",
        "string = nil math = {} pairs = nil type = nil",
        "a.seen = 1",
    ],
)
def test_nothing_that_a_script_changes_is_there_for_the_next(change: str) -> None:
    look = compile_script(
        "lua",
        "return {seen == nil, _ENV.seen == nil, string.seen == nil, ('').seen == nil, math.seen == nil,"
        " type(table.insert) == 'function', type(pairs) == 'function', a.seen == nil}",
        ["a"],
    )
    given: dict[str, Any] = {"a": {}}
    compile_script("lua", change, ["a"]).call(given)

    assert look.call(given) == {"result": [True] * 8}
    assert given == {"a": {}}


def test_one_script_starts_afresh_every_time() -> None:
    script = compile_script("lua", "n = (n or 0) + 1 return n", [])

    assert [script.evaluate({}) for _ in range(3)] == [1, 1, 1]


def test_a_machine_is_usable_after_every_kind_of_end() -> None:
    for source in ("while true do end", "local s = 'x' while true do s = s .. s end", "error('x')", "return 0/0"):
        for _ in range(5):
            with pytest.raises((LimitExceeded, ScriptFailed)):
                compile_script("lua", source, []).call({})
            assert value("return 'fine'") == "fine"


def test_the_same_script_gives_the_same_in_every_process() -> None:
    program = """
from weft.scripts import compile_script
source = '''
local t, s = {}, {}
for i = 1, 50 do t["k" .. (i * 7919) % 101] = i end
for k, v in pairs(t) do s[#s + 1] = k .. v end
local l = {} for i = 1, 300 do l[i] = {i % 5, i} end
table.sort(l, function(a, b) return a[1] < b[1] end)
return {s, l, tostring(t), tostring(pairs)}
'''
print(compile_script("lua", source, []).call({}))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }

    assert len(said) == 1
