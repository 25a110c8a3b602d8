"""Where Weft and Google's CEL differ, in one place. Everything else must be the same (`test_oracle.py`).

Each row: an expression, what the library says, what Weft says. `COMPILE` and `EVALUATE` are refusals: of the text, or
of the values. A test asks both, so no row outlives its reason.
"""

from __future__ import annotations

import re
from typing import Any, Final

COMPILE: Final = "refused when it is compiled"
EVALUATE: Final = "refused when it is evaluated"

DIFFERENCES: Final[dict[str, list[tuple[str, Any, Any]]]] = {
    "Integers and doubles mix in arithmetic, because JSON does not tell 1 from 1.0.": [
        ("n + d", EVALUATE, 9.5),
        ("d * 2", EVALUATE, 5.0),
        ("7u + 1", EVALUATE, 8),
        ("-1u", EVALUATE, -1),
        ("math.ceil(2)", EVALUATE, 2),
        ("math.round(7)", EVALUATE, 7),
    ],
    "Infinities and NaN are errors, because JSON has none.": [
        ("d / 0.0", float("inf"), EVALUATE),
        ("1e308 * 10.0", float("inf"), EVALUATE),
        ("1e999", float("inf"), COMPILE),
        ("double('Infinity')", float("inf"), EVALUATE),
    ],
    "null has no fields: `has` is false and `.?` is none.": [
        ("has(nil.x)", EVALUATE, False),
        ("nil.?x.orValue(1)", EVALUATE, 1),
    ],
    "The keys of maps are strings, as in JSON.": [
        ("{1: 'a'}", {1: "a"}, EVALUATE),
        ("{true: 1}[true]", 1, EVALUATE),
    ],
    "Bytes, protobuf messages, `optMap` and `optFlatMap` are not supported.": [
        ("b'abc'", bytearray(b"abc"), COMPILE),
        ("size(b'abc')", 3, COMPILE),
        ("google.protobuf.Int32Value{value: 1}", 1, COMPILE),
        ("o.b{}", EVALUATE, COMPILE),
        ("optional.of(1).optMap(x, x + 1).value()", 2, COMPILE),
        ("optional.of(1).optFlatMap(x, optional.of(x)).value()", 1, COMPILE),
        ("uint(1)", 1, COMPILE),
    ],
    "Unknown functions and wrong numbers of arguments are found when the text is compiled.": [
        ("no && foo(1)", False, COMPILE),
        ("foo(1)", EVALUATE, COMPILE),
        ("size(1, 2)", EVALUATE, COMPILE),
        ("l.all(x)", EVALUATE, COMPILE),
        ("s.matches('(')", EVALUATE, COMPILE),
    ],
    "Durations may have days, and doubles that are whole are written without an exponent.": [
        ("duration('2d') == duration('48h')", EVALUATE, True),
        ("string(123456789.0)", "1.23456789e+08", "123456789"),
    ],
    "The specification allows it, the library does not.": [
        (r"r'\'", COMPILE, "\\"),
        ("'lo'.substring(0, 2)", EVALUATE, "lo"),
        ("l.map(__result__, 1)", COMPILE, [1, 1, 1]),
        ("-9223372036854775808 % -1", EVALUATE, 0),
    ],
    "The results of types and optional values are not JSON.": [
        ("type(1)", EVALUATE, EVALUATE),
        ("o.?a", EVALUATE, EVALUATE),
    ],
}

_RAW_BACKSLASH = re.compile(r"""[rR]('''|\"""|'|")[^'"]*\\\1""")


def is_excepted(text: str) -> bool:
    """Whether a random text has a difference in it: a raw string that ends with a backslash."""
    return bool(_RAW_BACKSLASH.search(text))
