"""Random expressions on `oracle.DATA`: well typed, mostly, and spaced at random; and texts that are nearly expressions.

They keep to what CEL and Weft both promise (`differences.py` has the rest), so that whatever two evaluators say about
one of them must be the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_LEAVES = {
    "int": ["n", "m", "zero", "l[0]", "o.a", 'o["a-b"]', "rows[1].id", "1", "-2", "10", "0x1F", "9223372036854775807"],
    "double": ["d", "whole", "1.5", "-0.25", "2e3", ".5", "mixed[3]"],
    "string": ["s", "t", "u", "names[1]", "o.b.c", "'lo'", '"h"', "'ß'", "r'\\d'", "'''it's'''", r"'\u00e9\n\x41'"],
    "bool": ["yes", "no", "true", "false", "o.yes", "rows[0].ok", "has(o.b)", "has(o.zzz)", "has(o.b.list)"],
    "list": ["l", "empty", "[n, m]", "o.b.list", "[1, 2, 3,]", "[]", "[?o.?a, ?o.?zzz, 7]"],
    "strings": ["names", "['a', s]", "names.filter(w, w != 'bob')"],
    "map": ["o", "o.b", "rows[0]", "{'k': n}", "{}", "{'a': 1, 'b': [s],}", "{?'z': o.?a}"],
    "any": ["nil", "null", "mixed", "mixed[2]", "missing", "o.zzz", "l[9]", "rows[2].ok", "names[-1]", "s.x"],
}
_KINDS = list(_LEAVES)
_SIGNS = re.compile(r"(==|!=|<=|>=|&&|\|\||[()\[\]{},:])")


class Writer:
    """Writes expressions of a kind. `variables` are the names that loops and `cel.bind` have bound around it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[tuple[str, str]] = []

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def write(self, kind: str, depth: int) -> str:
        bound = [name for name, of in self.variables if of == kind]
        if bound and self.random.random() < 0.5:
            return self.random.choice(bound)
        if depth <= 0 or self.random.random() < 0.15:
            return self.random.choice(_LEAVES[kind])
        roll = self.random.random()
        if roll < 0.06:
            return f"({self.write('bool', depth - 1)} ? {self.write(kind, depth - 1)} : {self.write(kind, depth - 1)})"
        if roll < 0.1:
            return f"({self.write(kind, depth - 1)})"
        if roll < 0.16:
            return self.bind(kind, depth - 1)
        if roll < 0.2:
            found = {"int": "a", "string": "b.?c", "bool": "yes"}.get(kind, "zzz")
            return f"o.?{self.pick(found, 'zzz.?y')}.orValue({self.write(kind, depth - 1)})"
        if roll < 0.23:
            return f"[{self.write(kind, depth - 1)}, {self.write(kind, depth - 2)}][{self.pick('0', '1', '1', '2')}]"
        if roll < 0.26:
            return f"{{'k': {self.write(kind, depth - 1)}}}{self.pick('.k', '[' + chr(39) + 'k' + chr(39) + ']')}"
        makers: dict[str, Callable[[int], str]] = {
            "int": self.int, "double": self.double, "string": self.string, "bool": self.bool, "list": self.list,
            "strings": self.strings, "map": self.map, "any": self.any,
        }  # fmt: skip
        return makers[kind](depth - 1)

    def within(self, name: str, of: str, kind: str, depth: int) -> str:
        self.variables.append((name, of))
        text = self.write(kind, depth)
        self.variables.pop()
        return text

    def name(self) -> str:
        return self.pick("x", "y", "item", "v1", "_v")

    def bind(self, kind: str, depth: int) -> str:
        name, of = self.name(), self.random.choice(_KINDS)
        return f"cel.bind({name}, {self.write(of, depth)}, {self.within(name, of, kind, depth)})"

    def loop(self, depth: int, method: str, kind: str) -> str:
        name, of = self.name(), self.pick("int", "string", "any")
        source = {"int": "list", "string": "strings", "any": "any"}[of]
        held = "mixed" if source == "any" and self.random.random() < 0.5 else self.write(source, depth)
        return f"{held}.{method}({name}, {self.within(name, of, kind, depth)})"

    def int(self, depth: int) -> str:
        a, b = (self.write("int", depth) for _ in range(2))
        word = self.write("string", depth)
        return self.pick(
            f"({a} {self.pick('+', '-', '*', '/', '%')} {b})",
            f"{a} {self.pick('+', '-', '*')} {b}",
            f"-({a})",
            f"size({self.write(self.pick('list', 'string', 'map'), depth)})",
            f"{self.write('strings', depth)}.size()",
            f"{word}.{self.pick('indexOf', 'lastIndexOf')}({self.write('string', depth)})",
            f"int({self.write('double', depth)})",
            f"int(string({a}))",
            f"math.{self.pick('greatest', 'least')}({a}, {b})",
            "timestamp('2026-02-03T12:05:06Z')"
            + self.pick(".getHours()", ".getFullYear()", ".getDayOfWeek()", ".getMinutes('+02:30')"),
            f"duration('{self.pick('90m', '1h30m', '-5s', '86400s')}').getMinutes()",
        )

    def double(self, depth: int) -> str:
        a, b = (self.write("double", depth) for _ in range(2))
        whole = self.write("int", depth)
        return self.pick(f"({a} {self.pick('+', '-')} {b})", f"-({a})", f"double({whole})", f"({a} / 4.0)")

    def string(self, depth: int) -> str:
        a, b = (self.write("string", depth) for _ in range(2))
        return self.pick(
            f"({a} + {b})",
            f"{a}.{self.pick('lowerAscii()', 'upperAscii()', 'trim()')}",
            f"{a}.replace({b}, {self.pick(repr('x'), repr(''), 's')})" if b not in ("t", "''") else a,
            f"{a}.substring({self.pick('0', '1', '9')})",
            f"{a}.charAt({self.write('int', depth - 1)})",
            f"{self.write('strings', depth)}.join({self.pick('', repr(', '), b)})",
            f"string({self.write(self.pick('int', 'bool', 'string'), depth)})",
        )

    def bool(self, depth: int) -> str:
        kind = self.random.choice(_KINDS)
        a, b = self.write(kind, depth), self.write(kind, depth)
        other, word = self.write(self.random.choice(_KINDS), depth), self.write("string", depth)
        types = ("int", "string", "bool", "double", "list", "map", "null_type")
        terms = [self.write(self.pick("bool", "bool", "bool", "any"), depth) for _ in range(self.random.randint(2, 4))]
        return self.pick(
            f"({a} {self.pick('==', '!=', '<', '<=', '>', '>=')} {b})",
            f"({a} {self.pick('==', '!=', '<', '>=')} {other})",
            f"({self.pick(' && ', ' || ').join(terms)})",
            f"({self.pick(' && ', ' || ').join(terms)})",
            f"!{self.pick('', '!')}({terms[0]})",
            f"({self.write('int', depth)} in {self.write('list', depth)})",
            f"({self.write('string', depth)} in {self.write(self.pick('map', 'strings'), depth)})",
            f"{word}.{self.pick('contains', 'startsWith', 'endsWith')}({self.write('string', depth)})",
            f"{word}.matches({self.pick(repr('^h'), repr('[a-c]+'), repr('o$'))})",
            self.loop(depth, self.pick("all", "exists", "exists_one"), self.pick("bool", "bool", "any")),
            f"has(({self.write('map', depth)}).{self.pick('a', 'b', 'k', 'zzz')})",
            f"(type({a}) {self.pick('==', '!=')} {self.pick(*types)})",
            f"o.?{self.pick('a', 'zzz')}.hasValue()",
        )

    def list(self, depth: int) -> str:
        a, b = (self.write("list", depth) for _ in range(2))
        return self.pick(
            f"({a} + {b})",
            f"[{self.write('int', depth)}, {self.write('int', depth)}]",
            f"{a}.filter(i, {self.within('i', 'int', 'bool', depth)})",
            f"{a}.map(i, {self.within('i', 'int', 'int', depth)})",
            f"{a}.map(i, {self.within('i', 'int', 'bool', depth)}, {self.within('i', 'int', 'int', depth)})",
        )

    def strings(self, depth: int) -> str:
        a = self.write("strings", depth)
        return self.pick(
            f"({a} + {self.write('strings', depth)})",
            f"{a}.map(w, {self.within('w', 'string', 'string', depth)})",
            f"{a}.filter(w, {self.within('w', 'string', 'bool', depth)})",
            f"{self.write('string', depth)}.split({self.pick(repr('l'), repr(','))})",
        )

    def map(self, depth: int) -> str:
        value = self.write(self.random.choice(_KINDS), depth)
        return self.pick(
            f"{{'a': {value}, 'k': {self.write('int', depth)}}}", f"{{{self.write('string', depth)}: {value}}}"
        )

    def any(self, depth: int) -> str:
        """Of any kind, or an error."""
        a, b = self.random.choice([("string", "int"), ("bool", "int"), ("list", "string"), ("map", "int")])
        return self.pick(
            self.write(self.random.choice(_KINDS), depth),
            f"({self.write(a, depth)} + {self.write(b, depth)})",
            f"({self.write('list', depth)})[{self.write('int', depth)}]",
            f"({self.write('map', depth)}).{self.pick('a', 'k', 'zzz')}",
            f"({self.write('map', depth)})[{self.write('string', depth)}]",
            self.loop(depth, self.pick("map", "filter"), self.pick("bool", "int", "any")),
            f"-({self.write('string', depth)})",
            f"!({self.write('int', depth)})",
        )


def expression(seed: int) -> str:
    """An expression of any kind, spaced at random."""
    writer = Writer(seed)
    text = writer.write(writer.random.choice(_KINDS), writer.random.randint(1, 4))
    if writer.random.random() < 0.3 and "'''" not in text:
        text = _SIGNS.sub(
            lambda sign: f"{writer.pick('', ' ')}{sign[0]}{writer.pick('', ' ', '  ', chr(10), '//,' + chr(10))}", text
        )
    return text


_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|==|!=|<=|>=|&&|\|\||\s+|.", re.DOTALL)
_NOISE = [
    "a", ".", ".?", "[", "]", "(", ")", "{", "}", ",", ":", "?", "+", "-", "*", "/", "%", "!", "&&", "||", "==", "!=",
    "<", "<=", ">", ">=", " in ", "true", "null", "1", "1u", "2.5", "'a'", '"b"', r"'\x'", r"r'\d'", "b'x'", "0x1",
    "1e3", ".5", "for", "size(", "has(", ".map(", ".all(x,", "cel.bind(", "`", "`a-b`", "@", "#", "=", "&", "|", "$",
    ";", "é", "\\", "'", "'''", "//", "\n",
]  # fmt: skip


def nearly(seed: int) -> str:
    """An expression with some tokens left out, doubled, exchanged or replaced. A few still are expressions."""
    rng = random.Random(seed)
    tokens = _TOKEN.findall(expression(seed))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(tokens) + 1)
        match rng.randrange(4):
            case 0:
                tokens[at : at + 1] = []
            case 1:
                tokens[at:at] = [rng.choice(_NOISE)]
            case 2:
                tokens[at : at + 1] = [rng.choice(_NOISE)]
            case 3:
                tokens[at : at + 1] = tokens[at : at + 1] * 2
    return "".join(tokens)
