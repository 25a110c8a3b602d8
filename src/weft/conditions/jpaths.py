"""Select parts of a document by JSONPath (RFC 9535), or by a bare filter over its children.

$.order.total        selects by a path
@.kind == "mail"     selects the children of the document for which the filter is true
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from weft.conditions.budget import Evaluation, EvaluationFault, StepsUsedUp
from weft.conditions.cel.values import MISSING
from weft.conditions.failures import BadExpression, evaluation_failed, too_many_steps
from weft.conditions.jsonpaths import Query, compile_jsonpath


class Jpath:
    """A compiled JSONPath or filter."""

    __slots__ = ("_query", "text")

    def __init__(self, text: str, query: Query) -> None:
        self.text = text
        self._query = query

    def select(self, document: Any) -> list[Any]:
        """Return all parts of the document that the query selects.

        Raises:
            EvaluationFailed: the budget is exceeded.
        """
        try:
            found = self._query.find(Evaluation({}), document)
        except EvaluationFault as fault:
            raise evaluation_failed(fault, self.text, {}, ()) from None
        except StepsUsedUp:
            raise too_many_steps(self.text, {}, ()) from None
        if self._query.single or self._query.length:
            return [] if found is MISSING else [found]
        return list(found)


@lru_cache(maxsize=4_096)
def compile_jpath(text: str) -> Jpath:
    """Compile a JSONPath or a bare filter.

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
