"""Text that is no expression is refused with a position, a sentence and what to write instead."""

from __future__ import annotations

import pytest

from weft.conditions import BadExpression, ExpressionError, compile_expression
from weft.errors import BadValue


def errors(text: str) -> tuple[ExpressionError, ...]:
    with pytest.raises(BadExpression) as caught:
        compile_expression(text)
    return caught.value.errors


@pytest.mark.parametrize(
    ("text", "code", "position", "said"),
    [
        ("output.score + ", "syntax", 15, "ends too early"),
        ("output.score > 80 && (", "syntax", 22, "ends too early"),
        ("a ? b", "syntax", 5, "ends too early"),
        ("a.b.", "syntax", 4, "ends too early"),
        ("", "syntax", None, "empty"),
        (" \n ", "syntax", None, "empty"),
        ("1 +\n 2 + )", "syntax", 9, "`)` is unexpected"),
        ("1 2", "syntax", 2, "`2` is unexpected"),
        ("'abc", "syntax", 0, "a string is not closed"),
        ("'é😀' + )", "syntax", 7, "`)` is unexpected"),
        ("'''abc'", "syntax", 0, "a string is not closed"),
        ("r'abc", "syntax", 1, "a string is not closed"),
        ("a == 'C:\\dir'", "syntax", 8, "`\\d` is not an escape that CEL knows"),
        ("'\\x4'", "syntax", 1, "`\\x` is not an escape that CEL knows"),
        ("'\\ud800'", "syntax", 1, "is not a character"),
        ("size(a", "syntax", 6, "`(` is not closed"),
        ("[1, 2", "syntax", 5, "`[` is not closed"),
        ("{'a' 1}", "syntax", 5, "`1` is unexpected"),
        ("a ? b", "syntax", 5, "`:` is missing"),
        ("a.in", "syntax", 2, "`in` is a reserved word"),
        ("a.all(1, true)", "syntax", 6, "the name of a variable"),
        ("math.greatest('a')", "arguments", 14, "takes numbers"),
        ("'.optMap(' + b'x'", "unsupported", 13, "bytes"),
        ("\ud800", "syntax", None, "surrogate"),
        ("a\u202e", "syntax", 1, "`\\u202e` is unexpected"),
        ("for > 1", "syntax", 0, "`for` is a reserved word"),
        ("9223372036854775808", "syntax", 0, "does not fit in 64 bits"),
        ("has(a)", "syntax", 4, "`has` takes a field"),
        ("foo(1)", "unknown_function", 0, "no function `foo`"),
        ("a.b.lowerAsci()", "unknown_function", 4, "no function `lowerAsci`"),
        ("a.replace('x')", "arguments", 2, "takes 2 or 3 arguments, not 1"),
        ("size(a, b)", "arguments", 0, "takes 1 argument, not 2"),
        ("a.all(x)", "arguments", 2, "written `list.all(x, x > 0)`"),
        ("a.matches('(')", "pattern", 10, "not a regular expression"),
        ("a.matches('(?=x)y')", "pattern", 10, "look-around"),
        ("b'abc' == a", "unsupported", 0, "bytes"),
        ("a.b.C{x: 1}", "unsupported", 0, "protobuf"),
        ("1e999 > a", "unsupported", 0, "too large for a double"),
        ("a.?b.optMap(x, x)", "unsupported", 5, "`optMap` is not supported"),
        ("1 +" * 9_999 + "1", "too_long", None, "29,998 characters"),
        ("+".join(["1"] * 40), "too_deep", 63, "32 levels"),
        ("(" * 1_000 + "1" + ")" * 1_000, "too_deep", 33, "32 levels"),
        ("a" + ".b" * 40, "too_deep", 63, "32 levels"),
    ],
)
def test_an_error_has_a_code_a_position_and_a_sentence(text: str, code: str, position: int | None, said: str) -> None:
    (found,) = errors(text)

    assert found.code == f"expression.{code}"
    assert found.position == position
    assert said in found.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a and b", "`&&`"),
        ("a or b", "`||`"),
        ("not a", "`!`"),
        ("a if b else c", "`condition ? a : b`"),
        ("a = 1", "`==`"),
        ("a === 1", "`==`"),
        ("${a > 1}", "without `${ }`"),
        ("a !in b", "`!(a in b)`"),
        ("a ! in b", "`!(a in b)`"),
        ("if a then b", "`condition ? a : b`"),
        ("a & b", "`&&`"),
        ("a # b", "`//`"),
        ("{'a' 1}", "`:` is missing"),
        ("size(a b)", "`)` is missing"),
        ("a.true", '`["true"]`'),
        ("99999999999999999999", "`1e20`"),
        ("'\\d'", "raw string"),
        ("output.name.lowercase()", "`lowerAscii`"),
        ("output.startwith('a')", "`startsWith`"),
        ("contains(a, 'b')", "`x.contains(…)`"),
        ("Size(a)", "`size`"),
        ("math.ciel(a)", "`math.ceil`"),
    ],
)
def test_a_common_mistake_is_told_what_to_write(text: str, hint: str) -> None:
    assert hint in errors(text)[0].hint


def test_all_wrong_functions_are_found_at_once() -> None:
    found = errors("foo(a) + bar(b) + a.baz()")

    assert sorted(error.position or 0 for error in found) == [0, 9, 20]


def test_the_text_points_at_the_place() -> None:
    (found,) = errors("state.a > 1 &&\n  output.score => 80")

    assert (found.line, found.column) == (2, 16)
    assert str(found).splitlines()[1:3] == ["      output.score => 80", "                   ^"]


def test_a_long_line_is_shown_around_the_place() -> None:
    (found,) = errors("'" + "x" * 5_000 + "' + )")

    shown, caret = str(found).splitlines()[1:3]
    assert len(shown) < 120
    assert shown[caret.index("^")] == ")"


def test_it_is_a_bad_value_with_a_code_of_its_own() -> None:
    with pytest.raises(BadValue) as caught:
        compile_expression("a +")
    assert caught.value.code == "expression.invalid"
    assert "ends too early" in str(caught.value)
