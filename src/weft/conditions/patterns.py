"""Regular expressions in linear time, without look-around or back-references.

Python's own ``re`` backtracks and would hang on ``(a+)+$``; the regex engine of jsonschema-rs does not. The cost of a
match depends on the size of the compiled pattern: each character may cost one step per state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from weft.conditions.budget import Evaluation, EvaluationFault

PATTERN_CHARS_MAX: Final = 1_000
_PROGRAM_BYTES_MAX: Final = 1 << 20
_COMPILE_STEPS: Final = 50_000
_COUNTED = re.compile(r"\{([0-9]{1,6})(?:,([0-9]{0,6}))?\}")


class BadPattern(ValueError):
    """A text that is not a regular expression, or one that needs backtracking."""


class Pattern(NamedTuple):
    """A compiled pattern, and how many steps each character of a text costs."""

    check: Callable[[str], bool]
    steps: int


def pattern_options() -> Any:
    """Return the options that keep patterns linear and small, also those in a JSON Schema."""
    import jsonschema_rs  # noqa: PLC0415  # heavy, and only some conditions need it

    return jsonschema_rs.RegexOptions(size_limit=_PROGRAM_BYTES_MAX)


@lru_cache(maxsize=256)  # a compiled pattern may take a megabyte
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern that matches anywhere in a text (``^`` and ``$`` anchor it).

    Raises:
        BadPattern: the pattern does not compile.
    """
    import jsonschema_rs  # noqa: PLC0415  # heavy

    if len(pattern) > PATTERN_CHARS_MAX:
        raise BadPattern(f"the pattern has {len(pattern):,} characters; the limit is {PATTERN_CHARS_MAX:,}")
    try:
        validator: Any = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=pattern_options())
    except ValueError as error:
        raise BadPattern(f"`{pattern}` is not a regular expression, is too big, or uses look-around") from error
    return Pattern(validator.is_valid, steps_per_char(pattern))


def matches(frame: Evaluation, text: str, pattern: str) -> bool:
    """Return whether a pattern matches anywhere in a text. Charges for the match, and for a pattern that is not cached.

    Raises:
        EvaluationFault: the pattern does not compile, or the text is not Unicode.
    """
    misses = compile_pattern.cache_info().misses
    try:
        compiled = compile_pattern(pattern)
    except BadPattern as error:
        frame.charge(_COMPILE_STEPS)
        raise EvaluationFault(str(error)) from None
    if compile_pattern.cache_info().misses > misses:
        frame.charge(_COMPILE_STEPS)
    frame.charge(len(text) * compiled.steps + 5)
    try:
        return compiled.check(text)
    except UnicodeEncodeError:
        raise EvaluationFault("the text contains a lone surrogate, which is not Unicode") from None


def steps_per_char(pattern: str) -> int:
    """Estimate half the number of states of the compiled pattern: ``(a|b){100}`` has some hundreds."""
    sizes = [0]  # the sizes of the open groups, outermost first
    last = 1
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if counted := _COUNTED.match(pattern, at):
            times = int(counted[2] or counted[1])
            sizes[-1] += last * max(0, times - 1)
            at = counted.end()
            continue
        if char == "(":
            sizes.append(0)
        elif char == ")" and len(sizes) > 1:
            last = sizes.pop() + 1
            sizes[-1] += last
        else:
            last = 1
            sizes[-1] += 1
        at += 2 if char == "\\" else 1
    return 1 + sum(sizes) // 2
