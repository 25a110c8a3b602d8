"""Every function of CEL that is offered, with its answer; the library's own evaluator gives the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.conditions.differences import EVALUATE
from tests.conditions.oracle import DATA, ask
from weft.conditions import EvaluationFailed, compile_expression
from weft.conditions.cel.functions import FUNCTIONS, METHODS
from weft.conditions.cel.values import duration_text, timestamp_text

NOON = "timestamp('2026-02-03T12:05:06.789Z')"

ANSWERS: list[tuple[str, Any]] = [
    ("size('straße😀')", 7),
    ("[1, 2].size() + {'a': 1}.size() + 'abc'.size()", 6),
    ("type(1) == int && type('') == string && type([]) == list && type({}) == map", True),
    ("type(null) == null_type && type(1.5) == double && type(true) == bool", True),
    ("dyn(1) == 1", True),
    ("int('42') + int(-1.9) + int(timestamp('1970-01-01T00:01:00Z'))", 101),
    ("double('1.5') + double(2)", 3.5),
    ("string(1) + string(1.5) + string(true) + string('x')", "11.5truex"),
    ("string(duration('90s'))", "90s"),
    ("bool('true') && !bool('false') && bool('1') && !bool('f')", True),
    ("matches('abc', '^a.c$') && 'abc'.matches('b')", True),
    ("'abc'.contains('bc') && 'abc'.startsWith('ab') && 'abc'.endsWith('c')", True),
    ("'ÄbC'.lowerAscii() + 'äbC'.upperAscii()", "ÄbcäBC"),
    ("' \\t a '.trim()", "a"),
    ("'abc'.reverse()", "cba"),
    ("'straße'.charAt(4) + 'abc'.charAt(3)", "ß"),
    ("'aabbaa'.indexOf('b') + 'aabbaa'.indexOf('a', 2) + 'abc'.indexOf('x')", 5),
    ("'aabbaa'.lastIndexOf('a') + 'aabbaa'.lastIndexOf('a', 3)", 6),
    ("'abc'.substring(1) + 'abc'.substring(0, 1)", "bca"),
    ("'abab'.replace('ab', 'x') + 'abab'.replace('ab', 'x', 1)", "xxxab"),
    ("'a,b,c'.split(',') + 'a,b,c'.split(',', 2) + 'abc'.split('')", ["a", "b", "c", "a", "b,c", "a", "b", "c"]),
    ("['a', 'b'].join() + ['a', 'b'].join(', ')", "aba, b"),
    (
        "'%s is %d, %.2f, %x, %X, %o, %b, 100%%'.format(['n', 42, 2.345, 255, 255, 8, 5])",
        "n is 42, 2.35, ff, FF, 10, 101, 100%",
    ),
    ("'%s %s %e'.format([[1, 'a', null, true], {'k': 1.5}, 1234.5])", "[1, a, null, true] {k: 1.5} 1.234500e+03"),
    ("math.greatest(1, 2.5, -3)", 2.5),
    ("math.least([3, 1, 2])", 1),
    (
        "[math.ceil(1.2), math.floor(-1.2), math.round(2.5), math.round(-1.5), math.trunc(-1.9)]",
        [2.0, -2.0, 3.0, -2.0, -1.0],
    ),
    ("math.abs(-3) + math.sign(-5)", 2),
    ("math.sqrt(16.0)", 4.0),
    ("optional.of(1).value() + optional.none().orValue(2) + optional.none().or(optional.of(3)).value()", 6),
    ("optional.ofNonZeroValue('').hasValue() || optional.of(null).hasValue()", True),
    ("[?o.?a, ?o.?zzz, 3]", [1, 3]),
    ("{?'a': o.?a, ?'z': o.?zzz}", {"a": 1}),
    ("l[?0].value() + o[?'a'].value() + l[?9].orValue(5)", 7),
    ("o.?b.list[?1].value()", 2),
    (f"[{NOON}.getFullYear(), {NOON}.getMonth(), {NOON}.getDate(), {NOON}.getDayOfMonth()]", [2026, 1, 3, 2]),
    (f"[{NOON}.getDayOfWeek(), {NOON}.getDayOfYear(), {NOON}.getHours(), {NOON}.getMinutes()]", [2, 33, 12, 5]),
    (f"[{NOON}.getSeconds(), {NOON}.getMilliseconds(), {NOON}.getHours('Europe/Berlin')]", [6, 789, 13]),
    (f"{NOON}.getHours('-05:30') + {NOON}.getDate('+12:00')", 10),
    ("[duration('90m').getHours(), duration('90m').getMinutes(), duration('1.5s').getMilliseconds()]", [1, 90, 500]),
    ("duration('1h') + duration('30m') == duration('90m') && duration('-1.5s') < duration('0')", True),
    (f"{NOON} + duration('24h') > {NOON} && {NOON} - duration('1h') < {NOON}", True),
    (f"{NOON} - {NOON}", timedelta(0)),
    ("timestamp('2026-02-03T12:00:00+02:00')", "2026-02-03T10:00:00Z"),
    ("[-7 / 2, 7 % -3, -7 % 3, 7 / -2]", [-3, 1, -1, -3]),
    ("l.map(x, x > 1, x * 10)", [20, 30]),
    ("l.exists_one(x, x == 2) && l.all(x, x > 0) && empty.all(x, false) && !empty.exists(x, true)", True),
    ("o.filter(k, k.startsWith('a')).size()", 2),
    ("l.map(x, l.filter(y, y < x).size())", [0, 1, 2]),
    ("cel.bind(x, n * 2, x + x)", 28),
]


def as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp_text(value)
    return duration_text(value) if isinstance(value, timedelta) else value


@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_a_function_gives_what_the_library_gives(text: str, expected: Any) -> None:
    given = compile_expression(text).evaluate(DATA)

    assert given == as_json(expected)
    assert type(given) is type(as_json(expected))
    assert given == as_json(ask(text, DATA))


def test_a_loop_over_a_map_keeps_its_order() -> None:
    assert compile_expression("o.filter(k, k.startsWith('a'))").evaluate(DATA) == ["a", "a-b"]


REFUSALS = """
'abc'.charAt(4)|'abc'.charAt(-1)|'abc'.indexOf('c', 4)|'abc'.lastIndexOf('c', -1)|'abc'.substring(4)
'abc'.substring(2, 1)|'abc'.substring(0, 9)|[1].join(',')|'%d'.format(['a'])|'%s'.format([])|'%q'.format([1])
'%.9999f'.format([1.0])|int('1.5')|int('')|int(1e30)|int('9223372036854775808')|double('abc')|bool('yes')
string([1])|timestamp('2026-02-03')|timestamp('x')|duration('abc')|duration('1h 30m')|duration('')
optional.none().value()|7 % 0|1 / 0|-(-9223372036854775808)|-9223372036854775808 / -1|'a' + 1|[1] + 'a'|-'a'
!1|[1] < [2]|null < null|'a' in 'abc'|null in o|l[-1]|l['a']|o['zzz']|'abc'[0]|{'a': 1, 'a': 2}|{'a': 1}.b
s.map(x, x)|mixed.all(x, x.k == 1)|cel.bind(x, missing, x)|has(s.x)|size(1)|n.size()
timestamp('2026-02-03T12:00:00Z').getHours('Nowhere/X')|math.greatest(l, 1)|s.orValue(1)
timestamp('9999-12-31T23:59:59Z') + duration('48h')
"""


@pytest.mark.parametrize("text", [text for line in REFUSALS.split("\n") for text in line.split("|") if text])
def test_what_the_library_refuses_is_refused(text: str) -> None:
    assert ask(text, DATA) == EVALUATE
    with pytest.raises(EvaluationFailed):
        compile_expression(text).evaluate(DATA)


@pytest.mark.parametrize("name", sorted({*FUNCTIONS, *METHODS}))
def test_every_function_has_an_answer_above(name: str) -> None:
    assert any(name in text for text, _ in ANSWERS)
