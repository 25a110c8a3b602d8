"""Queries in JSONPath (RFC 9535), parsed by python-jsonpath and evaluated here within a budget of steps.

The library's own evaluator has no budget, and its regular expressions can hang. A simple path, which has only fields
and indexes (``$.a.b[0]``), does not need the library. As an extension of RFC 9535, a query may end in ``.length()``,
which returns the number of its matches, or the length of the value at a single path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from weft.conditions.budget import DEPTH_MAX, Evaluation, EvaluationFault
from weft.conditions.cel.operators import equal_cel_values
from weft.conditions.cel.values import MISSING
from weft.conditions.failures import BadExpression, ExpressionError, combine_errors
from weft.conditions.patterns import BadPattern, compile_pattern, matches

CHARS_MAX: Final = 1_000
NESTING_MAX: Final = 32
_LENGTH: Final = ".length()"
_SIMPLE_PIECE = re.compile(r"""(?:\.([^\W\d][\w-]*)|\[(-?(?:0|[1-9][0-9]{0,8}))\]|\['([^'\\]*)'\]|\["([^"\\]*)"\])""")

Nodes = list[Any]
Walk = Callable[
    [Evaluation, Any, Nodes], Nodes
]  # takes the evaluation, the root and the current nodes; returns the matches
Test = Callable[
    [Evaluation, Any, Any], Any
]  # takes the evaluation, the root and a node; returns a value, MISSING or a bool


class Query:
    """A compiled query. A ``single`` query has at most one match; other queries return a list of matches.

    ``pieces`` are the fields and indexes of a simple path, and None for other queries.
    """

    __slots__ = ("_walks", "length", "pieces", "single", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        path = text.strip()
        self.length = path.endswith(_LENGTH)
        if self.length:
            path = path.removesuffix(_LENGTH)
        self._walks: list[Walk] = []
        self.pieces = split_simple_jsonpath(path)
        self.single = True
        if self.pieces is None:
            parsed = _parsed(path, text)
            self.single = bool(parsed.singular_query())
            self._walks = [_segment(segment, text) for segment in parsed.segments]

    def find(self, frame: Evaluation, value: Any) -> Any:
        """Return the match of a single query, or MISSING; for other queries, return the list of matches."""
        if self.pieces is not None:
            match: Any = value_at(value, self.pieces)
        else:
            nodes = [value]
            for walk in self._walks:
                nodes = walk(frame, value, nodes)
            match = (nodes[0] if nodes else MISSING) if self.single else nodes
        return _length(match) if self.length else match


@lru_cache(maxsize=4_096)
def compile_jsonpath(text: str) -> Query:
    """Compile a JSONPath. The same text is compiled once.

    Raises:
        BadExpression: the text is not a JSONPath, is too long, or is nested too deeply.
    """
    if len(text) > CHARS_MAX:
        message = f"the path has {len(text):,} characters; the limit is {CHARS_MAX:,}."
        raise combine_errors([ExpressionError("expression.too_long", message, None, text[:80])])
    depth = deepest = 0
    for char in text:
        depth += (char in "[(") - (char in "])")
        deepest = max(deepest, depth)
    if deepest > NESTING_MAX:  # the parser recurses
        message = f"the path is nested too deeply; the limit is {NESTING_MAX} levels."
        raise combine_errors([ExpressionError("expression.too_deep", message, None, text)])
    return Query(text)


def split_simple_jsonpath(text: str) -> tuple[str | int, ...] | None:
    """Return the fields and indexes of a path like ``$.a.b[0]['c d']``, or None if the path has other parts."""
    if not text.startswith("$"):
        return None
    pieces: list[str | int] = []
    at = 1
    while at < len(text):
        piece = _SIMPLE_PIECE.match(text, at)
        if piece is None:
            return None
        name, index, quoted, double = piece.groups()
        pieces.append(int(index) if index is not None else next(p for p in (name, quoted, double) if p is not None))
        at = piece.end()
    return tuple(pieces)


def value_at(value: Any, pieces: Iterable[str | int]) -> Any:
    """Return the value at a path of fields and indexes, or MISSING."""
    for piece in pieces:
        if type(piece) is str:
            if not isinstance(value, Mapping) or piece not in value:
                return MISSING
        elif type(value) is not list or not -len(value) <= piece < len(value):  # type: ignore[operator]
            return MISSING
        value = value[piece]
    return value


def _length(match: Any) -> Any:
    if match is MISSING:
        return 0
    if type(match) in (list, str) or isinstance(match, Mapping):
        return len(match)
    raise EvaluationFault("`.length()` takes a list, a string or an object")


# Compile the syntax tree of the library to closures


@cache
def _environment() -> Any:
    from jsonpath import JSONPathEnvironment  # noqa: PLC0415  # heavy, and only filters and wildcards need it

    return JSONPathEnvironment(strict=True, filter_caching=False)


def _parsed(path: str, text: str) -> Any:
    from jsonpath import JSONPathError  # noqa: PLC0415  # as above

    try:
        return _environment().compile(path)
    except (JSONPathError, RecursionError) as error:
        token = getattr(error, "token", None)
        position = None if token is None else (token.index if token.index >= 0 else len(path))
        message = "nested too deeply" if isinstance(error, RecursionError) else str(error.args[0])
        hint = "" if path.startswith("$") else "A path starts with `$`, which is the output."
        raise _bad(f"the path cannot be read: {message}.", text, position, hint) from None


def _bad(message: str, text: str, position: int | None = None, hint: str = "") -> BadExpression:
    return combine_errors([ExpressionError("expression.jsonpath", message, position, text, hint=hint)])


def _segment(segment: Any, text: str) -> Walk:
    selectors = [_selector(selector, text) for selector in segment.selectors]
    descends = type(segment).__name__ == "JSONPathRecursiveDescentSegment"

    def walk(frame: Evaluation, root: Any, nodes: Nodes) -> Nodes:
        found: Nodes = []
        for node in _descendants(frame, nodes) if descends else nodes:
            for select in selectors:
                more = select(frame, root, [node])
                frame.charge(1 + len(more))
                found += more
        return found

    return walk


def _descendants(frame: Evaluation, nodes: Nodes) -> Iterable[Any]:
    """Yield the nodes and all lists and objects below them, parents first, in document order."""
    stack = [(node, 0) for node in reversed(nodes)]
    while stack:
        node, depth = stack.pop()
        if depth > DEPTH_MAX:
            raise EvaluationFault(f"the value is nested deeper than {DEPTH_MAX} levels")
        children = _children(node)
        frame.charge(2 + len(children))
        yield node
        stack += [(child, depth + 1) for child in reversed(children) if isinstance(child, list | Mapping)]


def _children(node: Any) -> Nodes:
    if type(node) is list:
        return node
    return list(node.values()) if isinstance(node, Mapping) else []


def _selector(selector: Any, text: str) -> Walk:
    match type(selector).__name__:
        case "NameSelector" | "IndexSelector":
            piece = selector.name if hasattr(selector, "name") else selector.index
            return lambda _frame, _root, nodes: [v for node in nodes if (v := value_at(node, (piece,))) is not MISSING]
        case "WildcardSelector":
            return lambda _frame, _root, nodes: [child for node in nodes for child in _children(node)]
        case "SliceSelector":
            part = selector.slice
            empty = part.step == 0  # RFC 9535: a step of 0 selects nothing
            return lambda _f, _r, nodes: [v for n in nodes if type(n) is list and not empty for v in n[part]]
        case "Filter":
            return _filter(_filter_test(selector.expression.expression, text))
        case _:
            raise _bad("the path uses a selector that is not in RFC 9535.", text)


def _filter(test: Test) -> Walk:
    def walk(frame: Evaluation, root: Any, nodes: Nodes) -> Nodes:
        found: Nodes = []
        for node in nodes:
            for child in _children(node):
                frame.charge(5)
                if test(frame, root, child):
                    found.append(child)
        return found

    return walk


def _filter_test(expression: Any, text: str) -> Test:
    """Compile a filter: a comparison, ``&&``, ``||``, ``!``, a function, or a query, which is true if it matches."""
    match type(expression).__name__:
        case "PrefixExpression":
            inner = _filter_test(expression.right, text)
            return lambda frame, root, node: not inner(frame, root, node)
        case "InfixExpression" if expression.logical:
            left, right = _filter_test(expression.left, text), _filter_test(expression.right, text)
            if expression.operator == "&&":
                return lambda frame, root, node: left(frame, root, node) and right(frame, root, node)
            return lambda frame, root, node: left(frame, root, node) or right(frame, root, node)
        case "InfixExpression":
            return _comparison(expression.operator, _value(expression.left, text), _value(expression.right, text))
        case "FunctionExtension":
            return _function(expression, text)
        case "RelativeFilterQuery" | "RootFilterQuery":
            find = _nodes(expression, text)
            return lambda frame, root, node: bool(find(frame, root, node))
        case _:
            raise _bad("a filter must be a comparison, a function or a path.", text)


def _value(expression: Any, text: str) -> Test:
    match type(expression).__name__:
        case "FunctionExtension":
            return _function(expression, text)
        case "RelativeFilterQuery" | "RootFilterQuery":
            find = _nodes(expression, text)
            return lambda frame, root, node: _single(find(frame, root, node))
        case "Nil":
            return lambda _frame, _root, _node: None
        case _:
            value = expression.value
            return lambda _frame, _root, _node: value


def _nodes(expression: Any, text: str) -> Test:
    walks = [_segment(segment, text) for segment in expression.path.segments]
    relative = type(expression).__name__ == "RelativeFilterQuery"

    def find(frame: Evaluation, root: Any, node: Any) -> Nodes:
        frame.charge(2 + len(walks))
        nodes = [node if relative else root]
        for walk in walks:
            nodes = walk(frame, root, nodes)
        return nodes

    return find


def _single(nodes: Nodes) -> Any:
    return nodes[0] if len(nodes) == 1 else MISSING


def _function(expression: Any, text: str) -> Test:
    name = expression.name
    if name in ("count", "value"):
        find = _nodes(expression.args[0], text)
        if name == "count":
            return lambda frame, root, node: len(find(frame, root, node))
        return lambda frame, root, node: _single(find(frame, root, node))
    first = _value(expression.args[0], text)
    if name == "length":
        return lambda frame, root, node: _size(first(frame, root, node))
    pattern = _value(expression.args[1], text)
    literal = getattr(expression.args[1], "value", None)
    if isinstance(literal, str):
        try:
            compile_pattern(_anchored(name, literal))
        except BadPattern as error:
            raise _bad(f"{error}.", text) from None
    return lambda frame, root, node: _matches(frame, name, first(frame, root, node), pattern(frame, root, node))


def _size(value: Any) -> Any:
    return len(value) if type(value) in (str, list) or isinstance(value, Mapping) else MISSING


def _matches(frame: Evaluation, name: str, value: Any, pattern: Any) -> bool:
    if type(value) is not str or type(pattern) is not str:
        return False
    return matches(frame, value, _anchored(name, pattern))


def _anchored(name: str, pattern: str) -> str:
    return f"^(?:{pattern})$" if name == "match" else pattern


def _comparison(operator: str, left: Test, right: Test) -> Test:
    compare = _COMPARE[operator]
    return lambda frame, root, node: compare(frame, left(frame, root, node), right(frame, root, node))


def _same(frame: Evaluation, a: Any, b: Any) -> bool:
    return a is b if a is MISSING or b is MISSING else equal_cel_values(frame, a, b)


def _less(_frame: Evaluation, a: Any, b: Any) -> bool:
    """Compare two numbers or two strings. For other operands the result is false, as in RFC 9535."""
    numbers = type(a) in (int, float) and type(b) in (int, float)
    return bool(a < b) if numbers or (type(a) is str and type(b) is str) else False


_COMPARE: dict[str, Callable[[Evaluation, Any, Any], bool]] = {
    "==": _same,
    "!=": lambda frame, a, b: not _same(frame, a, b),
    "<": _less,
    ">": lambda frame, a, b: _less(frame, b, a),
    "<=": lambda frame, a, b: _less(frame, a, b) or _same(frame, a, b),
    ">=": lambda frame, a, b: _less(frame, b, a) or _same(frame, a, b),
}
