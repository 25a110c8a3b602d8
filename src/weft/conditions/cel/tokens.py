"""Split text into tokens, and convert literals to values.

The first character that begins no token becomes a token of the kind ``bad`` and ends the list. The grammar accepts no
``bad`` token, so the parser reports it unless an earlier error stops the parser. Every quantifier in the pattern is
possessive, so reading takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import Any, Final

# Kind, text, position. The kind is the name of a group in the pattern below, or the sign or keyword itself.
Token = tuple[str, str, int]

_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
_TOKEN: Final = re.compile(
    r"""
    (?: [ \t\r\n\f]++ | //[^\n]*+ )*+
    (?: (?P<text> [bB]?+ (?:
              [rR] (?: '''(?:[^']|'(?!''))*+''' | \"""(?:[^"]|"(?!""))*+\""" | '(?!'')[^'\r\n]*+' | "(?!"")[^"\r\n]*+" )
            | '''(?:[^'\\]|\\.|'(?!''))*+''' | \"""(?:[^"\\]|\\.|"(?!""))*+\"""
            | '(?!'')(?:[^'\\\r\n]|\\[^\r\n])*+' | "(?!"")(?:[^"\\\r\n]|\\[^\r\n])*+"
        ))
      | (?P<name> [A-Za-z_][A-Za-z0-9_]*+ )
      | (?P<float> [0-9]*+\.[0-9]++(?:[eE][+-]?+[0-9]++)?+ | [0-9]++[eE][+-]?+[0-9]++ )
      | (?P<uint> (?: 0x[0-9a-fA-F]++ | [0-9]++ )[uU] )
      | (?P<int> 0x[0-9a-fA-F]++ | [0-9]++ )
      | (?P<sign> && | \|\| | [=!<>]= | [-+*/%!<>?:.,()\[\]{}] )
      | (?P<quoted> `[A-Za-z0-9_.\-/ ]++` )
      | (?P<end> \Z )
      | (?P<bad> . )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[abfnrtv\"'`?\\])|(\\)", re.DOTALL
)
_NEWLINE: Final = re.compile(r"\r\n?")
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_UINT_MAX: Final = (1 << 64) - 1
_DIGITS_MAX: Final = 400


class BadLiteral(Exception):
    """A malformed literal. ``at`` is the offset in its token."""

    def __init__(self, message: str, at: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


def read_tokens(text: str) -> list[Token]:
    """Return all tokens in a text. The last is ``end`` or ``bad``."""
    tokens = []
    for match in _TOKEN.finditer(text):
        kind: str = match.lastgroup  # type: ignore[assignment]  # every match has a group
        word = match[kind]
        if kind == "sign" or word in _KEYWORDS:
            kind = word
        tokens.append((kind, word, match.start(match.lastgroup)))  # type: ignore[arg-type]  # every match has a group
        if kind in ("end", "bad"):
            break
    return tokens


def number_value(kind: str, text: str) -> int | float:
    """Return the value of a number, which may have a sign.

    Raises:
        BadLiteral: the number does not fit in 64 bits.
    """
    if kind == "float":
        return float(text)
    digits = text.removesuffix("u").removesuffix("U")
    if len(digits) <= _DIGITS_MAX:
        value = int(digits, 16 if "x" in digits else 10)
        if (0 <= value <= _UINT_MAX) if kind == "uint" else (-(1 << 63) <= value < 1 << 63):
            return value
    raise BadLiteral("the number does not fit in 64 bits.", hint="Write it as a double, like `1e20`.")


def text_value(token: str) -> Any:
    """Return the value of a string, or bytes for a bytes literal, which is rejected later.

    Raises:
        BadLiteral: an escape is unknown, incomplete, or not a character.
    """
    body = token.lstrip("bBrR")
    prefix = token[: len(token) - len(body)]
    quotes = 3 if len(body) >= 6 and body[1] == body[0] else 1
    inner = body[quotes:-quotes]
    if "\r" in inner:
        inner = _NEWLINE.sub("\n", inner)
    if prefix[:1] in ("b", "B"):
        return inner.encode()
    if "\\" not in inner or prefix:
        return inner
    start = len(prefix) + quotes
    return _ESCAPE.sub(lambda match: _unescape(match, start), inner)


def _unescape(match: re.Match[str], start: int) -> str:
    escape = match[0]
    at = start + match.start()
    if match[1]:
        wrong = match.string[match.start() : match.start() + 2]
        message = f"`{wrong}` is not an escape that CEL knows, or is incomplete."
        raise BadLiteral(message, at, "Write `\\\\` for a backslash, or a raw string r'…'.")
    kind, digits = escape[1], escape[2:]
    if kind in "xXuU":
        code = int(digits, 16)
    elif kind.isdigit():
        code = int(escape[1:], 8)
    else:
        return _SIMPLE.get(kind, kind)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise BadLiteral(f"`{escape}` is not a character.", at)
    return chr(code)
