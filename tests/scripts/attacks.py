"""Scripts that want more than they may have, and a process that runs them and says what became of each.

`python -m tests.scripts.attacks lua` prints, per attack, the error, its seconds and the memory at its highest so far.
Scripts that only burn time burn less of it: for them the clocks stop a script earlier than they do for users. What
scripts take before they are stopped, in memory or in another way, they take with the time that users have.
"""

import json
import resource
import sys
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from weft.scripts import compile_script, limits

TIME_S_SHORT, WALL_S_SHORT = 0.15, 0.3
LIMIT, FAILED, BAD, VALUE = "LimitExceeded", "ScriptFailed", "BadScript", "BadValue"


class Attack(NamedTuple):
    """A script, how it must end, and what it is given."""

    source: str
    ends: str
    given: Mapping[str, Any] = MappingProxyType({})


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


LUA_BURNING: dict[str, Attack] = {
    # Time
    "endless loop": Attack("while true do end", LIMIT),
    "endless repeat": Attack("repeat local x = 1 until false", LIMIT),
    "endless goto": Attack("::again:: goto again", LIMIT),
    "huge for": Attack("local n = 0 for i = 1, math.maxinteger do n = n + i end return n", LIMIT),
    "float for": Attack("for x = 1, math.huge do end", LIMIT),
    "loop that swallows its end": Attack("while true do pcall(function() while true do end end) end", LIMIT),
    "nested pcalls": Attack("local function f() while true do pcall(f) end end f()", LIMIT),
    "unpacking nothing": Attack("while true do table.unpack({}, 1, 900000) end", LIMIT),
    "calls through patterns": Attack(
        "local function f() return (('x'):gsub('x', f)) end while true do pcall(f) end", LIMIT
    ),
    "recursion": Attack("local function f(n) return 1 + f(n + 1) end return f(1)", LIMIT),
    "tail recursion": Attack("local function f() return f() end return f()", LIMIT),
    "mutual recursion": Attack(
        "local g local function f() return 1 + g() end g = function() return f() end f()", LIMIT
    ),
    "endless comparison": Attack("table.sort({3, 2, 1}, function() while true do end end)", LIMIT),
    "comparison without order": Attack(
        "local t = {} for i = 1, 60000 do t[i] = i % 7 end while true do table.sort(t, function() return true end) end",
        LIMIT,
    ),
    "endless replacement": Attack("('x'):gsub('x', function() while true do end end)", LIMIT),
    "growing iterator": Attack("local i = 0 for _ in function() i = i + 1 return i end do end", LIMIT),
    "moving for ever": Attack("table.move({}, 1, math.maxinteger - 1, 2)", LIMIT),
    "moving down for ever": Attack("table.move({}, 2, math.maxinteger - 1, 1, {})", LIMIT),
    "inserting in front": Attack("local t = {} while true do table.insert(t, 1, 1) end", LIMIT),
    "removing in front": Attack(
        "local t = {} for i = 1, 500000 do t[i] = i end while true do table.remove(t, 1) t[#t + 1] = 1 end", LIMIT
    ),
    "pairs again and again": Attack(
        "local t = {} for i = 1, 50000 do t['k' .. i] = i end while true do for k in pairs(t) do break end end", LIMIT
    ),
    "next again and again": Attack(
        "local t = {} for i = 1, 50000 do t['k' .. i] = i end while true do local k = next(t) end", LIMIT
    ),
    "long texts compared": Attack(
        "local s = ('x'):rep(4000000) local a, b = s .. 'a', s .. 'b' while a ~= b do end", LIMIT
    ),
    "long texts ordered": Attack(
        "local s = ('x'):rep(4000000) local a, b = s .. 'a', s .. 'b' while a < b do end", LIMIT
    ),
    "long texts joined": Attack("local s = ('x'):rep(4000000) while true do local t = s .. s end", LIMIT),
    "upper case again and again": Attack("local s = ('x'):rep(4000000) while true do s = s:upper() end", LIMIT),
    "counting characters": Attack("local s = ('x'):rep(4000000) while true do utf8.len(s) end", LIMIT),
    "cutting again and again": Attack("local s = ('x'):rep(4000000) while true do local t = s:sub(2) end", LIMIT),
    "unpacking again and again": Attack(
        "local t = {} for i = 1, 200000 do t[i] = i end while true do select('#', table.unpack(t)) end", LIMIT
    ),
    "selecting from many": Attack(
        "local function f(...) while true do local x = select(2, ...) end end "
        "local t = {} for i = 1, 200000 do t[i] = i end f(table.unpack(t))",
        LIMIT,
    ),
    # Patterns
    "find with many loops": Attack("return string.find(('a'):rep(3000), '.-.-.-.-b')", LIMIT),
    "match with many loops": Attack("return (('a'):rep(2000)):match('.*.*.*.*.*b')", LIMIT),
    "gmatch with many loops": Attack("for x in (('a'):rep(3000)):gmatch('a*a*a*a*b') do end", LIMIT),
    "gsub with many loops": Attack("return (('a'):rep(3000)):gsub('a-a-a-a-b', '')", LIMIT),
    "optional characters": Attack("return (('a'):rep(28)):find(('a?'):rep(60) .. ('a'):rep(29))", LIMIT),
    "balance": Attack("return (('('):rep(60000)):find('%b()%b()')", LIMIT),
    "balance that hides loops": Attack("return ('[x' .. ('a'):rep(3000)):find('%b[xa*a*a*a*b]')", LIMIT),
    "set that hides loops": Attack("return (('a'):rep(3000)):find('[]]*a*a*a*a*a*b')", LIMIT),
    "references": Attack("return (('a'):rep(3000)):find('(a*)(a*)%1%2b')", LIMIT),
    "plain find": Attack("return (('a'):rep(4000000)):find(('a'):rep(2000000) .. 'b', 1, true)", LIMIT),
    "long pattern": Attack("return (('a'):rep(100000)):find(('.'):rep(50000) .. 'b')", LIMIT),
    "patterns in a loop": Attack("while true do (('a'):rep(60)):find('.-.-b') end", LIMIT),
    "patterns elsewhere in a loop": Attack("while true do (('a'):rep(600)):find('.-.-b') end", LIMIT),
}
LUA_TAKING: dict[str, Attack] = {
    # Memory
    "table": Attack("local t = {} while true do t[#t + 1] = {} end", LIMIT),
    "names": Attack("local t, i = {}, 0 while true do i = i + 1 t['key' .. i] = i end", LIMIT),
    "globals": Attack("local i = 0 while true do i = i + 1 _ENV['g' .. i] = {} end", LIMIT),
    "closures": Attack("local t = {} while true do local x = {} t[#t + 1] = function() return x end end", LIMIT),
    "doubled text": Attack("local s = 'x' while true do s = s .. s end", LIMIT),
    "doubled text, caught": Attack(
        "while true do pcall(function() local s = 'x' while true do s = s .. s end end) end", LIMIT
    ),
    "repeated text": Attack("return ('x'):rep(1e10)", LIMIT),
    "repeated nothing": Attack("return (''):rep(1e10, 'xxxxxxxx')", LIMIT),
    "repeated often": Attack("local t = {} while true do t[#t + 1] = ('x'):rep(1000000) .. #t end", LIMIT),
    "joined text": Attack(
        "local t = {} for i = 1, 1000 do t[i] = ('x'):rep(10000) .. i end return table.concat(t, ('y'):rep(100000))",
        LIMIT,
    ),
    "formatted text": Attack("local s = 'x' while true do s = string.format('%s%s', s, s) end", LIMIT),
    "replaced text": Attack("local s = 'xx' while true do s = s:gsub('x', 'xx') end", LIMIT),
    "varargs": Attack("local function f(...) return f(1, ...) end f()", LIMIT),
    "linked list": Attack("local l while true do l = {l} end", LIMIT),
    "almost full": Attack(
        "local t = {} for i = 1, 110000 do t[i] = {i} end while true do local x = {{}, {}, {}} end", LIMIT
    ),
    # Results
    "cycle": Attack("local t = {} t.t = t return t", LIMIT),
    "shared parts": Attack("local t = {1} for i = 1, 60 do t = {t, t} end return t", LIMIT),
    "deep result": Attack("local t = {1} for i = 1, 5000 do t = {t} end return t", LIMIT),
    "wide result": Attack("local t = {} for i = 1, 300000 do t[i] = i end return t", LIMIT),
    "sparse result": Attack("return {[2^40] = 1}", LIMIT),
    "long result": Attack("return ('x'):rep(3000000) .. ('y'):rep(3000000)", LIMIT),
    "result of control characters": Attack("return ('\\1'):rep(3000000)", LIMIT),
    "not a number": Attack("return 0/0", FAILED),
    "infinity": Attack("return {a = {1, 1/0}}", FAILED),
    "function": Attack("return {f = print or function() end}", FAILED),
    "not text": Attack("return '\\xff\\xfe'", FAILED),
    "mixed table": Attack("return {1, a = 2}", FAILED),
    "long error": Attack("error(('x'):rep(4000000))", FAILED),
    "error that is a cycle": Attack("local t = {} t.t = t error(t)", FAILED),
    "error that pretends": Attack("error({limit = 'none', reason = {}})", FAILED),
    # Ways out
    "os": Attack("return os.execute('true')", FAILED),
    "io": Attack("return io.open('/etc/passwd')", FAILED),
    "require": Attack("return require('os')", FAILED),
    "load": Attack("return load('return 1')()", FAILED),
    "dofile": Attack("return dofile('/etc/passwd')", FAILED),
    "debug": Attack("return debug.getregistry()", FAILED),
    "package": Attack("return package.loaded", FAILED),
    "coroutine": Attack("return coroutine.wrap(function() while true do end end)()", FAILED),
    "collectgarbage": Attack("collectgarbage('stop')", FAILED),
    "python": Attack("return python.eval('1')", FAILED),
    "setmetatable": Attack("setmetatable({}, {__gc = function() while true do end end})", FAILED),
    "getmetatable": Attack("return getmetatable('').__index", FAILED),
    "rawset": Attack("rawset(string, 'upper', 1)", FAILED),
    "globals of the machine": Attack("return _G.os", FAILED),
    "dice": Attack("return math.random()", FAILED),
    "bytecode of a function": Attack("return string.dump(function() end)", FAILED),
    "library changed": Attack("string.upper = nil", FAILED),
    "library changed by insert": Attack("table.insert(string, 1)", FAILED),
    "method added": Attack("function string:shout() return self end", FAILED),
    "address": Attack("return string.format('%20p', {})", FAILED),
    "wide format": Attack("return string.format('%999999d', 1)", FAILED),
    "xpcall": Attack("xpcall(function() end, function() end)", FAILED),
    # Texts and inputs
    "bytecode": Attack("\x1bLua\x54\x00\x19\x93\r\n\x1a\n", BAD),
    "nested parentheses": Attack("return " + "(" * 30_000 + "1" + ")" * 30_000, BAD),
    "nested functions": Attack("return " + "function() return " * 2_000, BAD),
    "many variables": Attack("\n".join(f"local v{i} = {i}" for i in range(300)), BAD),
    "long text": Attack("x = 1 " * 20_000, BAD),
    "way out of the wrapping": Attack("end os.execute('true') do", BAD),
    "huge integer": Attack("return a", FAILED, {"a": 10**30}),
    "deep input": Attack("return a", LIMIT, {"a": nested(5_000)}),
    "wide input": Attack("return a", LIMIT, {"a": [[]] * 1_300_000}),
    "long input": Attack("return a", LIMIT, {"a": "x" * 5_000_000}),
    "infinite input": Attack("return a", VALUE, {"a": float("inf")}),
}

GROW = "(reduce (lambda (acc i) {}) {} (range {}))"
ALE: dict[str, Attack] = {
    # Time
    "omega": Attack("((lambda (f) (f f)) (lambda (f) (f f)))", LIMIT),
    "recursion": Attack("(let-rec ([f (lambda (n) (+ 1 (f (inc n))))]) (f 0))", LIMIT),
    "mutual recursion": Attack("(let-rec ([f (lambda () (g))] [g (lambda () (f))]) (f))", LIMIT),
    "recursion that swallows its end": Attack("(let-rec ([f (lambda () (try (f) (catch [e] (f))))]) (f))", LIMIT),
    "fork": Attack("(let-rec ([f (lambda (n) (if (= n 0) 1 (+ (f (dec n)) (f (dec n)))))]) (f 30))", LIMIT),
    "caught again and again": Attack(
        '(let-rec ([f (lambda (n) (if (= n 0) 1 (try (begin (f (dec n)) (raise "x"))'
        " (catch [e] (f (dec n))))))]) (f 30))",
        LIMIT,
    ),
    "fixed point": Attack("((lambda (x) (x x 0)) (lambda (x n) (x x (inc n))))", LIMIT),
    "loops in loops": Attack(
        "(map (lambda (a) (map (lambda (b) (map (lambda (c) 1) (range 1000))) (range 1000))) (range 1000))", LIMIT
    ),
    "loops without a result": Attack(
        "(reduce (lambda (n a) (reduce (lambda (n b) (+ n b)) n (range 5000))) 0 (range 5000))", LIMIT
    ),
    "filter": Attack("(filter (lambda (a) (empty? (filter (lambda (b) false) (range 20000)))) (range 20000))", LIMIT),
    "map over itself": Attack("((lambda (m) (m m)) (lambda (m) (map m [m m])))", LIMIT),
    "recursion through apply": Attack("(let-rec ([f (lambda (x) (apply f [x]))]) (f 1))", LIMIT),
    "recursion through map": Attack("(let-rec ([f (lambda (x) (map f [x]))]) (f 1))", LIMIT),
    "recursion through reduce": Attack("(let-rec ([f (lambda (a b) (reduce f [a b]))]) (f 1 2))", LIMIT),
    "recursion through filter": Attack("(let-rec ([f (lambda (x) (filter f [x]))]) (f 1))", LIMIT),
    "recursion through catch": Attack('(let-rec ([f (lambda (x) (try (raise "x") (catch [e f] 1)))]) (f 1))', LIMIT),
    "calls of deep bodies": Attack(
        "(let-rec ([f (lambda (n) " + "(+ 1 " * 40 + "(f n)" + ")" * 40 + ")]) (f 1))", LIMIT
    ),
    "equal shared parts": Attack(
        "(let* ([a " + GROW.format("[acc acc]", "[1]", 60) + "] [b " + GROW.format("[acc acc]", "[1]", 60) + "])"
        " (eq a b))",
        LIMIT,
    ),
    "equal but for one key": Attack(
        "(let* ([o (seq->object (apply concat (map (lambda (i) [(str i) i]) (range 5000))))]"
        " [a (assoc o :a 1)] [b (assoc o :b 1)])"
        " (reduce (lambda (n i) (eq a b)) 0 (range 100000)))",
        LIMIT,
    ),
    "equal long texts": Attack(
        "(let* ([s " + GROW.format("(str acc acc)", '"x"', 22) + "] [t (str s)])"
        " (reduce (lambda (n i) (eq s t)) true (range 100000)))",
        LIMIT,
    ),
    "last of a long text": Attack(
        "(let* ([s " + GROW.format("(str acc acc)", '"x"', 20) + "])"
        " (reduce (lambda (n i) (last s)) 0 (range 100000)))",
        LIMIT,
    ),
    "rest, slowly": Attack("(let-rec ([f (lambda (s) (f (rest s)))]) (f (range 200000)))", LIMIT),
    "rest in a loop": Attack("(reduce (lambda (s i) (rest s)) (range 100000) (range 100000))", LIMIT),
    "reverse in a loop": Attack("(reduce (lambda (s i) (reverse s)) (range 100000) (range 100000))", LIMIT),
    # Memory
    "range": Attack("(range 1000000000000)", LIMIT),
    "range down": Attack("(range 0 -1000000000000 -1)", LIMIT),
    "range of big integers": Attack("(range 0 (* 9999999999999999 9999999999999999))", LIMIT),
    "range of wide integers": Attack(f"(range {2**8000} (+ {2**8000} 1000000))", LIMIT),
    "doubled text": Attack(GROW.format("(str acc acc)", '"x"', 100), LIMIT),
    "doubled sequence": Attack(GROW.format("(concat acc acc)", "[1]", 100), LIMIT),
    "tripled vector in text": Attack("(str " + GROW.format("[acc acc acc]", "[1]", 50) + ")", LIMIT),
    "appended sequence": Attack(GROW.format("(conj acc i)", "[]", 100_000), LIMIT),
    "prepended sequence": Attack(GROW.format("(cons i acc)", "[]", 100_000), LIMIT),
    "grown object": Attack(GROW.format('(assoc acc (str "k" i) i)', "{}", 100_000), LIMIT),
    "kept sequences": Attack("(map (lambda (i) (range 100000)) (range 1000))", LIMIT),
    "kept texts": Attack(
        "(let* ([s " + GROW.format("(str acc acc)", '"x"', 20) + "]) (map (lambda (i) (str s i)) (range 1000)))", LIMIT
    ),
    "kept frames": Attack("(map (lambda (i) (lambda () i)) (range 10000000))", LIMIT),
    "applied to many": Attack(GROW.format("(apply list (concat acc acc))", "[1]", 40), LIMIT),
    "squared integer": Attack(GROW.format("(* acc acc)", "3", 100), LIMIT),
    "power": Attack("(apply * (map (lambda (i) 99999999999) (range 100000)))", LIMIT),
    "exact ratio": Attack(GROW.format("(+ acc (/ 1 (inc i)))", "0", 20_000), LIMIT),
    "squared ratio": Attack(GROW.format("(* acc acc)", "(/ 2 3)", 100), LIMIT),
    # Results
    "shared parts": Attack(GROW.format("[acc acc]", "[1]", 60), LIMIT),
    "shared objects": Attack(GROW.format("{:a acc :b acc}", "{}", 60), LIMIT),
    "deep result": Attack(GROW.format("[acc]", "[]", 5000), LIMIT),
    "deep text": Attack("(str " + GROW.format("[acc]", "[]", 5000) + ")", LIMIT),
    "wide result": Attack("(range 250000)", LIMIT),
    "long result": Attack(GROW.format("(str acc acc)", '"xxxxxxxx"', 20), LIMIT),
    "infinity": Attack("(/ 1.0 0)", FAILED),
    "not a number": Attack("{:a [(- (/ 1.0 0) (/ 1.0 0))]}", FAILED),
    "ratio too large for a float": Attack(f"(/ {10**400} 3)", FAILED),
    "integer too large for a float": Attack(f"(+ {10**400} 0.5)", FAILED),
    "function": Attack("(lambda (x) x)", FAILED),
    "procedure": Attack("{:f map}", FAILED),
    "long error": Attack("(raise " + GROW.format("(str acc acc)", '"x"', 20) + ")", FAILED),
    # Values that do not fit
    "zero": Attack("(/ 1 0)", FAILED),
    "zero of mod": Attack("(mod 1 0)", FAILED),
    "sum of text": Attack('(+ 1 "1")', FAILED),
    "comparison of null": Attack("(> null 1)", FAILED),
    "call of text": Attack('("f" 2)', FAILED),
    "key of a number": Attack("(:a 1)", FAILED),
    "too many arguments": Attack("((lambda (x) x) 1 2)", FAILED),
    # Ways out
    "import": Attack('(import "os")', BAD),
    "dunder": Attack("(__import__ :os)", BAD),
    "attribute": Attack("(:__class__ (lambda (x) x))", FAILED),
    "attribute of an object": Attack("((:__class__ {}) 1)", FAILED),
    "eval": Attack("(eval '(+ 1 1))", BAD),
    "clock": Attack("(current-time)", BAD),
    "thread": Attack("(go (lambda () 1))", BAD),
    "definition": Attack("(define x 1)", BAD),
    # Texts and inputs
    "nested parentheses": Attack("(" * 30_000 + ")" * 30_000, BAD),
    "nested vectors": Attack("[" * 30_000 + "]" * 30_000, BAD),
    "nested quotes": Attack("'" * 60_000 + "1", BAD),
    "long threading": Attack("(-> 1 " + "(inc) " * 9_000 + ")", BAD),
    "nested lambdas": Attack("(lambda () " * 3_000 + ")" * 3_000, BAD),
    "number of many digits": Attack("9" * 60_000, BAD),
    "infinite literal": Attack("1e999", BAD),
    "long text": Attack("(inc 1) " * 20_000, BAD),
    "endless comment": Attack("1 #| " * 1_000, BAD),
    "endless string": Attack('"' + "\\" * 9_001, BAD),
    "deep input": Attack("a", LIMIT, {"a": nested(5_000)}),
    "long input": Attack("a", LIMIT, {"a": "x" * 5_000_000}),
    "infinite input": Attack("a", VALUE, {"a": float("nan")}),
}
ATTACKS = {"lua": LUA_BURNING | LUA_TAKING, "ale": ALE}
# One for each of the two clocks burns as long as users' scripts may.
SHORT = {"lua": LUA_BURNING.keys() - {"long texts compared", "find with many loops"}}


def memory_kb() -> int:
    """The most that this process, or one of its children, has ever held."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def cpu_seconds() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def ending(language: str, attack: Attack) -> str:
    try:
        compile_script(language, attack.source, list(attack.given)).call(attack.given)
    except Exception as error:
        return type(error).__name__
    return "a result"


def main(language: str, names: list[str]) -> None:
    compile_script(language, "return 1" if language == "lua" else "1", []).call({})
    before = memory_kb()
    told: dict[str, tuple[str, float, int]] = {}
    for name in names:
        cpu = cpu_seconds()
        ended = ending(language, ATTACKS[language][name])
        told[name] = (ended, cpu_seconds() - cpu, memory_kb() - before)
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[2] == "short":  # before the first script, which loads its language and the limits with it
        limits.TIME_S_MAX, limits.WALL_S_MAX = TIME_S_SHORT, WALL_S_SHORT  # type: ignore[misc]
    main(sys.argv[1], sys.argv[3:])
