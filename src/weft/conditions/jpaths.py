"""jpath: JSONPath (RFC 9535), or a bare filter over the children of a document.

$.order.total        selects by a path
@.kind == "mail"     selects the children of the document for which the filter is true
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from weft.conditions.budget import BudgetExceeded, Evaluation, EvaluationFault
from weft.conditions.cel.values import MISSING
from weft.conditions.expressions import failure, too_much
from weft.conditions.failures import BadExpression
from weft.conditions.jsonpaths import Query, compile_jsonpath


class Jpath:
    """A compiled query."""

    __slots__ = ("_query", "text")

    def __init__(self, text: str, query: Query) -> None:
        self.text = text
        self._query = query

    def select(self, document: Any) -> list[Any]:
        """Return everything that the query finds.

        Raises:
            EvaluationFailed: the budget is exceeded.
        """
        try:
            found = self._query.find(Evaluation({}), document)
        except EvaluationFault as fault:
            raise failure(fault, self.text, {}, ()) from None
        except BudgetExceeded:
            raise too_much(self.text, {}, ()) from None
        if self._query.single or self._query.length:
            return [] if found is MISSING else [found]
        return list(found)


@lru_cache(maxsize=4_096)
def compile_jpath(text: str) -> Jpath:
    """Compile a query.

    Raises:
        BadExpression: the text is neither a path nor a filter.
    """
    try:
        return Jpath(text, compile_jsonpath(text))
    except BadExpression as error:
        try:
            return Jpath(text, compile_jsonpath(f"$[?{text}]"))
        except BadExpression as other:
            raise (error if text.lstrip().startswith("$") else other) from None
