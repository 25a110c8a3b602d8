"""Expressions by section of the CEL specification and of its extensions, a line each.

The sections are those of the specification's own conformance suite, as far as they concern JSON. The answers are the
library's, asked when the test runs.
"""

from __future__ import annotations

from typing import Final

_TEXT: Final = r"""
# basic: literals
0
-42
0xffffff
-0x1A
9223372036854775807
-9223372036854775808
0.0
-2.3e+1
1E-3
.5
""
'single'
"it's"
'"quoted"'
'''three 'quotes' '''
''''''
r'raw\n\d'
R"raw\t"
'\a\b\f\n\r\t\v\\\?\"\'\`'
'\x41\X42\u00e9\U0001F600\101'
'é😀'
true
false
null
[]
[1, 'two', 3.0, null, [true]]
[1, 2,]
[,]
{}
{'a': 1, "b": {'c': []}}
{'a': 1,}
{'a': 1}.a
n
.n
o.a
o["a-b"]
o.`a-b`
o.b.list[1]
missing
o.missing
n // a comment

# parse: precedence and association
1 + 2 * 3 - 4
(1 + 2) * 3
10 - 4 - 3
100 / 10 / 5
7 % 4 % 2
2 * 3 % 4
-n + 1
- n
--n
---n
--1
-(-1)
!yes
!!yes
!!!yes
!no && yes
yes || no && no
(yes || no) && no
yes ? 1 : 2
no ? 1 : yes ? 2 : 3
yes ? no ? 1 : 2 : 3
(yes ? no : yes) ? 1 : 2
yes || no ? 'a' : 'b'
1 < 2 == true
1 + 1 == 2 && 2 + 2 == 4
1 in [1] && 2 in l
!(1 in [1])
-l[0]
-o.a
!o.yes
n-1
n -1
n - -1
n--1
1.5.a
-1.a
'abc'.size()
[1, 2][0]
{'k': [n]}.k[0]
(o).b.c
n+
n +* 2
1 2
(n
n)
[1
{'a' 1}
n ? 1
n ? 1 :
'open
"open
'''open'
'\8'
'\x4'
'\ud800'
'\U00110000'
a.
.
a..b
f(1,)
f(,)
[1,,2]
{,1}
1.
0x
1_000
n = 1
n === 1
n & m
n | m
#
@n
`n`
n.true
n.in
in
for
if(yes)
while.x
yes ? no ? 1 : 2
!-n
-!yes
rb'x'
n{
9223372036854775808
-9223372036854775809
18446744073709551616u

# comparisons
1 == 1
1 == 1.0
1 != 2
1 == '1'
1u == 1
'a' == 'a'
'a' == 'A'
'é' == 'é'
true == true
true == 1
null == null
null == 0
null == false
[1, 2] == [1, 2]
[1, 2] == [2, 1]
[1, 2] == [1.0, 2.0]
[] == []
[] == {}
{'a': 1} == {'a': 1.0}
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
{'a': 1} == {'a': 1, 'b': 2}
{'a': [1, {'b': null}]} == {'a': [1, {'b': null}]}
1 < 2
2 <= 2
1 < 1.5
1.5 > 1
-1 < 0
9223372036854775807 > 9.0e18
'a' < 'b'
'Z' < 'a'
'' < 'a'
'a' >= 'a'
'é' > 'e'
false < true
true <= false
1 < '2'
null < null
[1] < [2]
true > 0
1 in [1, 2]
1.0 in [1, 2]
'1' in [1, 2]
'a' in {'a': 1}
'b' in {'a': 1}
null in [null]
[1] in [[1], [2]]
1 in 'a'
timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-01T00:00:01Z')
duration('1s') == duration('1000ms')
duration('1m') > duration('59s')
type(1) == int
type(1.0) == double
type('a') == string
type(null) == null_type
type([]) == list
type({}) == map
type(true) == bool
type(type(1)) == type
type(1) == type(2)
type(1) != type('a')

# integer and floating-point arithmetic
40 + 2
-5 + 3
42 - 47
6 * -7
7 / 2
-7 / 2
7 / -2
-7 / -2
7 % 3
-7 % 3
7 % -3
0 / 5
5 / 0
5 % 0
9223372036854775807 + 1
-9223372036854775808 - 1
9223372036854775807 * 2
-(-9223372036854775808)
-9223372036854775808 / -1
1.5 + 2.5
2.5 - 1.0
1.5 * 2.0
5.0 / 2.0
-(2.5)
2.5 % 2.0
'a' - 'b'
-'a'
true + true
null + 1

# strings and lists
'a' + 'b'
'' + ''
'a' + 1
[1] + [2, 3]
[] + []
[1] + 2
size('')
size('é😀')
'abc'.size()
size([1, 2])
size({'a': 1})
[].size()
size(1)
'abc'.contains('b')
'abc'.contains('')
'abc'.startsWith('ab')
'abc'.startsWith('b')
'abc'.endsWith('bc')
'abc'.endsWith('')
'abc'.matches('^a.*c$')
'abc'.matches('b')
matches('abc', 'x')
'é'.matches('^.$')
l[0]
l[2]
l[3]
l[-1]
l[1.0]
l['a']
o['a']
o['zzz']
o.b['c']
names[0][0]

# logic: errors are absorbed where the other side settles it
true || missing
missing || true
false && missing
missing && false
false || missing
missing || false
true && missing
missing && true
missing || missing
true || 1
1 || true
false || 1
1 && false
no || no || missing || yes
yes && missing && no
missing ? 1 : 2
1 ? 2 : 3
yes ? 1 : missing
no ? missing : 1
!missing
!1
!null

# macros
has(o.a)
has(o.zzz)
has(o.b.c)
has(o.zzz.y)
has(o.`a-b`)
has({'a': null}.a)
has(n.x)
has(o)
has(o['a'])
has(has(o.a))
l.all(x, x > 0)
l.all(x, x > 1)
[].all(x, false)
l.all(x, x / (x - 2) > 0)
l.all(x, missing)
l.all(x, 1)
mixed.all(x, x > 0)
l.exists(x, x == 2)
l.exists(x, x == 9)
[].exists(x, true)
mixed.exists(x, x == 'a')
l.exists(x, x / (x - 1) > 0)
l.exists(x, 'a')
l.exists_one(x, x == 2)
l.exists_one(x, x > 1)
[].exists_one(x, true)
l.exists_one(x, missing)
l.exists_one(x, x)
l.map(x, x * x)
[].map(x, missing)
l.map(x, x > 1, x * 10)
l.map(x, missing)
l.map(x, x, x)
l.filter(x, x % 2 == 1)
l.filter(x, x)
l.filter(x, missing)
{'a': 1}.all(k, k == 'a')
{'a': 1}.map(k, k + 'x')
{'a': 1}.exists(k, k == 'b')
l.map(x, l.map(y, x * y))
l.map(x, l.filter(y, y > x).size())
l.map(n, n)
l.all(x, l.exists(y, x == y))
'abc'.map(x, x)
1.map(x, x)
rows.filter(r, has(r.ok)).map(r, r.id)
rows.exists(r, r.ok)
rows.all(r, r.ok)
l.all(x.y, true)
l.all(1, true)
l.map('x', x)

# bindings
cel.bind(x, 1, x + x)
cel.bind(x, 1, cel.bind(x, x + 1, x))
cel.bind(x, missing, 1)
cel.bind(x, missing, x)
cel.bind(x, missing, x == 1 || true)
cel.bind(x, l.map(y, y + 1), x.exists(y, y == 4))
cel.bind(n, n + 1, n)
cel.bind(1, 2, 3)
cel.bind(a.b, 2, 3)

# conversions
int(1.9)
int(-1.9)
int('42')
int('-1')
int('1.0')
int('')
int('a')
int(1e19)
int(timestamp('1970-01-01T00:01:00Z'))
double(1)
double('1.5')
double('-1e3')
double('a')
string(1)
string(-1)
string(1.5)
string(true)
string('a')
string(duration('90s'))
string(timestamp('2026-02-03T04:05:06Z'))
bool('true')
bool('false')
bool('maybe')
bool(true)
dyn(1) == 1
dyn([1, 'a'])[1]

# timestamps and durations
timestamp('2026-02-03T04:05:06.789Z').getFullYear()
timestamp('2026-02-03T04:05:06.789Z').getMonth()
timestamp('2026-02-03T04:05:06.789Z').getDate()
timestamp('2026-02-03T04:05:06.789Z').getDayOfMonth()
timestamp('2026-02-03T04:05:06.789Z').getDayOfWeek()
timestamp('2026-02-03T04:05:06.789Z').getDayOfYear()
timestamp('2026-02-03T04:05:06.789Z').getHours()
timestamp('2026-02-03T04:05:06.789Z').getMinutes()
timestamp('2026-02-03T04:05:06.789Z').getSeconds()
timestamp('2026-02-03T04:05:06.789Z').getMilliseconds()
timestamp('2026-02-03T23:30:00Z').getDate('+02:00')
timestamp('2026-02-03T23:30:00Z').getHours('America/New_York')
timestamp('2026-02-03T04:05:06+02:00') == timestamp('2026-02-03T02:05:06Z')
timestamp('2026-02-03T04:05:06Z') + duration('1h') == timestamp('2026-02-03T05:05:06Z')
duration('1h') + timestamp('2026-02-03T04:05:06Z') == timestamp('2026-02-03T05:05:06Z')
timestamp('2026-02-03T04:05:06Z') - duration('1h') == timestamp('2026-02-03T03:05:06Z')
timestamp('2026-02-03T04:05:06Z') - timestamp('2026-02-03T04:05:05Z') == duration('1s')
timestamp('2026-02-30T00:00:00Z')
timestamp('today')
duration('1h30m').getMinutes()
duration('1h30m').getHours()
duration('1h30m').getSeconds()
duration('-1.5s').getMilliseconds()
duration('1h') - duration('30m') == duration('30m')
duration('1x')
duration('1h') + 1

# optional values
optional.of(1).value()
optional.none().value()
optional.none().hasValue()
optional.none().orValue(2)
optional.of(1).or(optional.of(2)).value()
optional.none().or(optional.of(2)).value()
optional.ofNonZeroValue(0).hasValue()
optional.ofNonZeroValue(1).hasValue()
o.?a.value()
o.?zzz.hasValue()
o.?zzz.orValue('none')
o.?b.c.value()
o.?b.?zzz.orValue(0)
o.?zzz.y.z.orValue(0)
o[?'a'].value()
l[?9].orValue(0)
[?o.?a, ?o.?zzz]
{?'a': o.?a, ?'z': o.?zzz}
[?1]
o.?a.b
has(o.?a)

# extensions: strings and math
'abc'.charAt(1)
'abc'.charAt(3)
'abc'.charAt(4)
'abcb'.indexOf('b')
'abcb'.indexOf('b', 2)
'abcb'.lastIndexOf('b')
'abcb'.lastIndexOf('b', 2)
'abc'.indexOf('')
'AbÉ'.lowerAscii()
'abé'.upperAscii()
'  a '.trim()
'aXbX'.replace('X', '-')
'aXbX'.replace('X', '-', 1)
'a,b,c'.split(',')
'a,b,c'.split(',', 2)
'a,b,c'.split(',', 0)
['a', 'b'].join()
['a', 'b'].join('-')
[].join('-')
[1].join('-')
'abc'.substring(1)
'abc'.substring(0, 2)
'abc'.substring(2, 1)
'abc'.reverse()
'%s-%d'.format(['a', 1])
'%.2f'.format([1.255])
'%x %X %o %b'.format([255, 255, 8, 5])
'%d'.format(['a'])
math.greatest(1, 2)
math.greatest(1, 2, 3)
math.greatest([3, 1])
math.least(1.5, 2)
math.least(-1)
math.greatest('a')
math.greatest(1, 'a')
math.least(null)
math.ceil(1.2)
math.floor(-1.2)
math.round(2.5)
math.trunc(-1.9)
math.abs(-3)
math.abs(-2.5)
math.sign(-3)
math.sqrt(9.0)
"""


def _sections() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    cases: list[str] = []
    for line in _TEXT.split("\n"):
        if line.startswith("# "):
            cases = sections.setdefault(line.removeprefix("# "), [])
        elif line:
            cases.append(line)
    return sections


CASES: Final = _sections()
