"""Parse text to a syntax tree, by precedence climbing.

An accepted expression has at most ``CHARS_MAX`` characters and a tree of at most ``DEPTH_MAX`` levels, so the tree can
be walked recursively. Parsing takes time linear in the length of the text. It stops at the first error. The error has
a position, and a hint if the text looks like another language.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

from weft.conditions.cel.macros import FUNCTION_MACROS, METHOD_MACROS, BadMacro
from weft.conditions.cel.tokens import BadLiteral, number_value, read_tokens, text_value
from weft.conditions.cel.tree import CallNode, ConstNode, IdentNode, ListNode, MapNode, SelectNode
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors, shorten

CHARS_MAX: Final = 10_000
DEPTH_MAX: Final = 32

_LOGIC: Final = 2  # the highest level whose operators take any number of operands
_LEVELS: Final = {
    "||": (1, "_||_"), "&&": (2, "_&&_"),
    "<": (3, "_<_"), "<=": (3, "_<=_"), ">": (3, "_>_"), ">=": (3, "_>=_"), "==": (3, "_==_"), "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"), "-": (4, "_-_"),
    "*": (5, "_*_"), "/": (5, "_/_"), "%": (5, "_%_"),
}  # fmt: skip
_NO_OPERATOR: Final = (0, "")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_NUMBERS: Final = frozenset({"int", "uint", "float"})
_RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "namespace",
    "package", "return", "var", "void", "while",
})  # fmt: skip
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_HINTS: Final = {
    "and": "CEL writes `&&`.",
    "or": "CEL writes `||`.",
    "not": "CEL writes `!`.",
    "if": "CEL writes `condition ? a : b`.",
    "is": "CEL writes `==`.",
    "=": "To compare, write `==`.",
    "&": "CEL writes `&&`.",
    "|": "CEL writes `||`.",
    "$": "This is a CEL expression, not a template: write it without `${ }`.",
    ";": "An expression is one value; there are no statements.",
    "!in": "CEL writes `!(a in b)`.",
    "#": "A comment begins with `//`.",
}


def parse(text: str) -> Any:
    """Parse an expression to its syntax tree.

    Raises:
        BadExpression: the text is not CEL, is too long, or is nested too deeply.
    """
    if len(text) > CHARS_MAX:
        message = f"the expression has {len(text):,} characters; the limit is {CHARS_MAX:,}."
        raise _bad("too_long", message, shorten(text))
    if not text.strip():
        raise _bad("syntax", "the expression is empty.", text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"character {error.start + 1} is half of a surrogate pair."
            raise _bad("syntax", message, shorten(ascii(text))) from None
    return _Parser(text).parse_all()


class _Parser:
    """Reads the tokens from left to right. ``height`` is that of the tree returned last."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = iter(read_tokens(text))
        self.kind, self.word, self.at = next(self.tokens)
        self.nesting = 0
        self.height = 0

    def parse_all(self) -> Any:
        node = self.expression()
        if self.kind != "end":
            self.unexpected()
        return node

    def advance(self) -> None:
        self.kind, self.word, self.at = next(self.tokens)

    def expect(self, kind: str, opened: str = "") -> None:
        if self.kind != kind:
            self.unexpected(kind, opened)
        self.advance()

    def expression(self) -> Any:
        """Parse ``condition ? a : b``, or an expression without ``?``."""
        self.nesting += 1
        if self.nesting > DEPTH_MAX + 1:
            self.too_deep(self.at)
        node = self.operation(1)
        if self.kind == "?":
            at, height = self.at, self.height
            self.advance()
            taken = self.operation(1)
            height = max(height, self.height)
            self.expect(":")
            other = self.expression()
            self.grow(max(height, self.height), at)
            node = CallNode(None, "_?_:_", (node, taken, other), at)
        self.nesting -= 1
        return node

    def operation(self, least: int) -> Any:
        """Parse operands and the operators between them that bind at least as tightly as ``least``."""
        left = self.unary()
        while True:
            sign = self.kind
            level, function = _LEVELS.get(sign, _NO_OPERATOR)
            if level < least or not level:
                return left
            at, height = self.at, self.height
            self.advance()
            right = self.operation(level + 1)
            height = max(height, self.height)
            operands = [left, right]
            while level <= _LOGIC and self.kind == sign:
                self.advance()
                operands.append(self.operation(level + 1))
                height = max(height, self.height)
            self.grow(height, at)
            left = CallNode(None, function, tuple(operands), at)

    def unary(self) -> Any:
        """Parse a value with any number of ``!`` or ``-`` before it. Two of them cancel out."""
        sign, start, count = self.kind, self.at, 0
        if sign not in ("!", "-"):
            return self.member()
        while self.kind == sign:
            count += 1
            self.advance()
        if sign == "-" and count == 1 and self.kind in ("int", "float"):
            return self.member("-", start)
        if sign == "!" and self.kind == "-":
            at = self.at
            self.advance()
            node = self.member("-", at) if self.kind in ("int", "float") else self.unexpected()
        else:
            node = self.member()
        if count % 2 == 0:
            return node
        self.grow(self.height, start)
        return CallNode(None, f"{sign}_", (node,), start)

    def member(self, sign: str = "", at: int = 0) -> Any:
        """Parse a value and its suffixes: ``.field``, ``.?field``, ``.method(…)``, ``[index]``, ``[?index]``."""
        name_at = self.at
        node = self.number(sign, at) if sign or self.kind in _NUMBERS else self.primary()
        while True:
            match self.kind:
                case ".":
                    node = self.dotted(node)
                case "[":
                    node = self.indexed(node)
                case "{" if self.is_name(node, name_at):
                    name = self.text[name_at : self.at].strip()
                    raise _bad(
                        "unsupported",
                        f"`{shorten(name, 40)}{{…}}` makes a protobuf message, which JSON does not have.",
                        self.text,
                        name_at,
                    )
                case _:
                    return node

    def is_name(self, node: Any, start: int) -> bool:
        """Return whether a node was written as names with dots between them."""
        while isinstance(node, SelectNode) and not node.tests:
            node = node.operand
        return isinstance(node, IdentNode) and self.text[start] != "("

    def dotted(self, node: Any) -> Any:
        at, height = self.at, self.height
        self.advance()
        optional = self.kind == "?"
        if optional:
            self.advance()
        kind, word, word_at = self.kind, self.word, self.at
        if kind not in ("name", "quoted"):
            self.no_field()
        self.advance()
        if kind == "name" and not optional and self.kind == "(":
            return self.method(node, word, word_at, height)
        self.grow(height, at)
        field = word if kind == "name" else word[1:-1]
        if optional:
            return CallNode(None, "_?._", (node, ConstNode(field, word_at)), at)
        return SelectNode(node, field, False, at)

    def method(self, target: Any, name: str, at: int, height: int) -> Any:
        args = self.arguments()
        self.grow(max(height, self.height), at)
        macro = METHOD_MACROS.get(name)
        try:
            node = macro(target, name, args, at) if macro else None
        except BadMacro as error:
            raise _bad(error.code, error.message, self.text, error.at, error.hint) from None
        return CallNode(target, name, args, at) if node is None else node

    def indexed(self, node: Any) -> Any:
        at, height = self.at, self.height
        self.advance()
        optional = self.kind == "?"
        if optional:
            self.advance()
        index = self.expression()
        self.expect("]", "[")
        self.grow(max(height, self.height), at)
        return CallNode(None, "_[?_]" if optional else "_[_]", (node, index), at)

    def primary(self) -> Any:
        kind, word, at = self.kind, self.word, self.at
        match kind:
            case "name":
                return self.name()
            case "text":
                self.advance()
                self.height = 1
                try:
                    return ConstNode(text_value(word), at)
                except BadLiteral as error:
                    raise _bad("syntax", error.message, self.text, at + error.at, error.hint) from None
            case "true" | "false" | "null":
                self.advance()
                self.height = 1
                return ConstNode(_CONSTANTS[kind], at)
            case "(":
                self.advance()
                node = self.expression()
                self.expect(")", "(")
                return node
            case "[":
                return self.list_of()
            case "{":
                return self.map_of()
            case ".":
                self.advance()
                if self.kind == "name":
                    return self.name()
        return self.unexpected()

    def number(self, sign: str, sign_at: int) -> ConstNode:
        at = sign_at if sign else self.at
        try:
            node = ConstNode(number_value(self.kind, sign + self.word), at)
        except BadLiteral as error:
            raise _bad("syntax", error.message, self.text, at, error.hint) from None
        self.advance()
        self.height = 1
        return node

    def name(self) -> Any:
        """Parse a name, or a call of the function with that name."""
        name, at = self.word, self.at
        if name in _RESERVED:
            hint = _HINTS.get(name) or f'If it is a field, write `x["{name}"]` or `x.{name}`.'
            raise _bad("syntax", f"`{name}` is a reserved word.", self.text, at, hint)
        self.advance()
        if self.kind != "(":
            self.height = 1
            return IdentNode(name, at)
        args = self.arguments()
        self.grow(self.height, at)
        macro = FUNCTION_MACROS.get(name)
        try:
            node = macro(None, name, args, at) if macro else None
        except BadMacro as error:
            raise _bad(error.code, error.message, self.text, error.at, error.hint) from None
        return CallNode(None, name, args, at) if node is None else node

    def arguments(self) -> tuple[Any, ...]:
        self.advance()
        args: list[Any] = []
        height = 0
        while args or self.kind != ")":
            args.append(self.expression())
            height = max(height, self.height)
            if self.kind != ",":
                break
            self.advance()
        self.expect(")", "(")
        self.height = height
        return tuple(args)

    def list_of(self) -> ListNode:
        at, height = self.at, 0
        items: list[Any] = []
        optional = []
        self.advance()
        while self.kind not in ("]", ","):
            if self.kind == "?":
                self.advance()
                optional.append(len(items))
            items.append(self.expression())
            height = max(height, self.height)
            if self.kind != ",":
                break
            self.advance()
            if self.kind == ",":
                self.unexpected()
        if not items and self.kind == ",":
            self.advance()
        self.expect("]", "[")
        self.grow(height, at)
        return ListNode(tuple(items), frozenset(optional), at)

    def map_of(self) -> MapNode:
        at, height = self.at, 0
        entries: list[tuple[Any, Any, bool]] = []
        self.advance()
        while self.kind not in ("}", ","):
            optional = self.kind == "?"
            if optional:
                self.advance()
            key = self.expression()
            height = max(height, self.height)
            self.expect(":")
            value = self.expression()
            height = max(height, self.height)
            entries.append((key, value, optional))
            if self.kind != ",":
                break
            self.advance()
            if self.kind == ",":
                self.unexpected()
        if not entries and self.kind == ",":
            self.advance()
        self.expect("}", "{")
        self.grow(height, at)
        return MapNode(tuple(entries), at)

    # Limits and errors

    def grow(self, height: int, at: int) -> None:
        """Set the height after a node was put on top of a tree with this height."""
        if height >= DEPTH_MAX:
            self.too_deep(at)
        self.height = height + 1

    def too_deep(self, at: int) -> NoReturn:
        message = f"the expression is nested too deeply; the limit is {DEPTH_MAX} levels."
        raise _bad("too_deep", message, self.text, at, "Each bracket, operator and `.field` in a row is a level.")

    def no_field(self) -> NoReturn:
        if self.kind in ("in", *_CONSTANTS):
            hint = f'Write `["{self.word}"]` for a field with this name.'
            raise _bad("syntax", f"`{self.word}` is a reserved word.", self.text, self.at, hint)
        self.unexpected()

    def unexpected(self, wanted: str = "", opened: str = "") -> NoReturn:
        """Report the current token, which is not allowed here."""
        if self.kind == "end":
            message = "the expression ends too early"
            message += f": `{opened}` is not closed." if opened else f": `{wanted}` is missing." if wanted else "."
            raise _bad("syntax", message, self.text, len(self.text))
        if self.kind == "bad" and self.word in "'\"":
            raise _bad("syntax", "a string is not closed.", self.text, self.at)
        word = self.word if self.word.isprintable() else ascii(self.word)[1:-1]
        missing = f"`{wanted}` is missing here." if wanted else ""
        message = f"`{shorten(word, 40)}` is unexpected here."
        raise _bad("syntax", message, self.text, self.at, _hint(self.text, self.at) or missing)


def _hint(text: str, position: int) -> str:
    before = re.search(r"(\w+)\s*$", text[max(0, position - 20) : position])
    here = re.match(r"!\s*in\b|\w+|\S", text[position : position + 20])
    word = here[0].replace(" ", "") if here else ""
    if before and before[1] in ("not", "if") and word not in _HINTS:
        word = before[1]
    return _HINTS.get(word, "")


def _bad(code: str, message: str, text: str, position: int | None = None, hint: str = "") -> BadExpression:
    return combine_errors([ExpressionError(f"expression.{code}", message, position, text, hint=hint)])
