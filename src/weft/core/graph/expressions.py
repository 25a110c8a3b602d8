"""Parse every expression in a graph once, and find the names and nodes that it uses. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.core.findings import At, Problems
from weft.core.graph.folded import Source
from weft.core.graph.language import ExpressionLanguage, Fault, Unreadable, Uses
from weft.core.graph.model import Expr

BOUND = ("input", "state", "output", "error", "nodes", "branch", "join", "ctx", "_branch")
"""Names that every expression may use. ``as`` names are bound only inside their branches."""

EVERY_NODE = ["*"]

Kind = Literal["condition", "expression", "template"]


class ExpressionUse(msgspec.Struct, frozen=True):
    """The names that one expression uses. ``faults``: why it cannot be parsed."""

    names: list[str] = []
    nodes: list[str] = []
    mentions_error: bool = False
    faults: list[Fault] = []
    fields: list[tuple[str, str]] = []


class Mention(msgspec.Struct, frozen=True):
    """Names used at a node (``START``: by the graph as a whole), to be checked once the scopes are known.

    ``fields``: the fields of the input and the state that are read.
    """

    node: str
    names: list[str]
    at: At
    fields: list[tuple[str, str]] = []


class DocumentReader:
    """Reads expressions through a cache, so that each text is parsed once, however many nodes use it."""

    def __init__(self, language: ExpressionLanguage, nodes: dict[str, Any], problems: Problems) -> None:
        self._language = language
        self._nodes = nodes
        self._problems = problems
        self._cache: dict[tuple[Kind, bytes], ExpressionUse] = {}
        self.mentions: list[Mention] = []
        self.remembered: set[str] = set()
        """Nodes that an expression names."""

    def read(self, kind: Kind, source: Source, node: str) -> tuple[Expr, bool]:
        """Return the expression with its names (none if it does not parse), and whether it mentions an error."""
        if self._problems.full:
            return Expr(source.text), False
        seen = self._parse_cached(kind, source.text)
        for fault in seen.faults:
            self._problems.add(fault.code, (*source.at, *fault.at), fault.message, fault.hint)
        for name in seen.nodes:
            if name in self._nodes:
                self.remembered.add(name)
            elif name == "*":
                self.remembered.update(self._nodes)
            else:
                self._problems.add(
                    "unknown_node", source.at, f'no node "{name}".', self._problems.near(name, self._nodes)
                )
        if seen.names:
            self.mentions.append(Mention(node, seen.names, source.at, seen.fields))
        return Expr(source.text, seen.names, seen.nodes), seen.mentions_error

    def template(self, source: Source | None, node: str) -> Expr | None:
        """Read an optional template. An object is read field by field, so that each error has its own place."""
        if source is None:
            return None
        if not isinstance(source.text, dict):
            return self.read("template", source, node)[0]
        parts = [self.read("template", Source(text, (*source.at, key)), node)[0] for key, text in source.text.items()]
        names = sorted({name for part in parts for name in part.names})
        nodes = sorted({name for part in parts for name in part.nodes})
        return Expr(source.text, names, EVERY_NODE if "*" in nodes else nodes)

    def _parse_cached(self, kind: Kind, source: Any) -> ExpressionUse:
        key = (kind, msgspec.json.encode(source, order="sorted"))
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._parse_expression(kind, source)
        return found

    def _parse_expression(self, kind: Kind, source: Any) -> ExpressionUse:
        try:
            uses: Uses = getattr(self._language, kind)(source)
        except Unreadable as error:
            return ExpressionUse(faults=error.faults)
        fields = sorted({path[:2] for path in uses.paths if len(path) > 1 and path[0] in ("input", "state")})
        read = [(root, field) for root, field in fields]
        return ExpressionUse(sorted(uses.names), _nodes_named(uses), uses.mentions_error, fields=read)


def _nodes_named(uses: Uses) -> list[str]:
    """Return the nodes that an expression names, or all of them if it does not say which."""
    named: set[str] = set()
    followed: set[str] = set()
    for path in uses.paths:
        if path[0] in ("nodes", "ctx"):
            if len(path) == 1:
                return EVERY_NODE
            followed.add(path[0])
            named.add(path[1])
    whole = {"nodes", "ctx"} & set(uses.names) - followed
    return EVERY_NODE if whole else sorted(named)
