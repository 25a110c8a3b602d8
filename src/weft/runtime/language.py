"""Evaluate the expressions, templates and conditions of documents. They are compiled once and run inside a decision.

An evaluation that needs its own process must not run inside a decision. It becomes a question, which is answered
outside the decision, and the answer is cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from weft.cache import BoundedCache
from weft.conditions import Condition, Expression, Template, compile_condition, compile_expression, compile_template
from weft.core.run.env import MissingInputs, Predicate
from weft.errors import WeftError
from weft.scripts import compile_script

ANSWERS_MAX = 4096
CONDITION = "condition"
"""The language of a question that is a condition in a graph."""
_canonical = msgspec.json.Encoder(order="sorted").encode

Answer = tuple[Any, dict[str, Any]] | WeftError
"""A value, and the values that it depends on. The value of a condition is whether it is true."""


class HostLanguage:
    """Evaluates conditions, expressions and templates."""

    def __init__(self) -> None:
        self._answers: BoundedCache[Predicate, Answer] = BoundedCache(ANSWERS_MAX)
        self._compiled: dict[int, tuple[Any, Condition]] = {}
        self._templates: dict[int, tuple[Any, Template]] = {}

    def condition(self, source: Any, bindings: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        """Return whether a condition is true, and the values it read. Raises MissingInputs, EvaluationFailed."""
        condition = self._compiled_condition(source)
        if condition.needs_sandbox:
            holds, seen = self._cached_answer(Predicate(CONDITION, _canonical(source).decode(), _canonical(bindings)))
            return bool(holds), seen
        verdict = condition.evaluate(bindings)
        return verdict.value, verdict.seen

    def expression(self, source: str, bindings: Mapping[str, Any]) -> Any:
        """Return the value of an expression. Raises EvaluationFailed."""
        return _compile_cached(source).evaluate(bindings)

    def template(self, source: Any, bindings: Mapping[str, Any]) -> Any:
        """Fill a template. Raises EvaluationFailed."""
        if isinstance(source, str):
            return _text_template(source).evaluate(bindings)
        # A template exists as long as its graph, so its identity is a key, and a cheaper one than its content.
        known = self._templates.get(id(source))
        if known is None or known[0] is not source:
            known = self._templates[id(source)] = (source, compile_template(source))
        return known[1].evaluate(bindings)

    def script(self, question: Predicate) -> Any:
        """Return the result of a script. Raises MissingInputs, ScriptFailed, LimitExceeded."""
        return self._cached_answer(question)[0]

    def _compiled_condition(self, source: Any) -> Condition:
        if isinstance(source, str | bool):
            return _text_condition(source)
        known = self._compiled.get(id(source))
        if known is None or known[0] is not source:
            known = self._compiled[id(source)] = (source, compile_condition(source))
        return known[1]

    def _cached_answer(self, question: Predicate) -> tuple[Any, dict[str, Any]]:
        found = self._answers.get(question)
        if found is None:
            raise MissingInputs(questions=[question])
        if isinstance(found, WeftError):
            raise found
        return found

    def answer(self, question: Predicate) -> None:
        """Answer a question outside of a decision, and cache the answer. Blocks: call it in a thread."""
        if self._answers.get(question) is not None:
            return
        answer: Answer
        try:
            answer = _evaluate_question(question)
        except WeftError as error:
            answer = error
        self._answers.put(question, answer)


def _evaluate_question(question: Predicate) -> tuple[Any, dict[str, Any]]:
    values = msgspec.json.decode(question.values)
    if question.language == CONDITION:
        verdict = compile_condition(msgspec.json.decode(question.source)).evaluate(values)
        return verdict.value, verdict.seen
    return compile_script(question.language, question.source, tuple(values)).evaluate(values), {}


@lru_cache(maxsize=4096)
def _text_condition(source: str | bool) -> Condition:  # noqa: FBT001 - `when: true` is a condition
    return compile_condition(source)


@lru_cache(maxsize=4096)
def _compile_cached(source: str) -> Expression:
    return compile_expression(source)


@lru_cache(maxsize=4096)
def _text_template(source: str) -> Template:
    return compile_template(source)


LANGUAGE = HostLanguage()
"""One instance per process: compiled sources and answers do not depend on the caller."""
