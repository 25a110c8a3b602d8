"""Evaluate and check the predicates, matches and mappings of goals, in CEL, jpath, Lua and Ale.

CEL and jpath are evaluated inside a decision. Lua and Ale are evaluated outside of it, in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.conditions import BadExpression, compile_expression, compile_jpath
from weft.conditions.schemas import compile_schema
from weft.core.goal.definitions import Script
from weft.core.goal.scripts import Unmapped, script_predicate
from weft.errors import WeftError
from weft.runtime.language import LANGUAGE
from weft.runtime.schema_check import check_schema
from weft.scripts import compile_script

_WORD = re.compile(r"[A-Za-z_][\w-]*")


class GoalLanguage:
    """Evaluates the scripts in step definitions."""

    def holds(self, script: Script, bindings: Mapping[str, Any]) -> bool:
        """Return whether a predicate or match is true. Raises MissingInputs, EvaluationFailed, ScriptFailed."""
        if script.lang == "cel":
            return LANGUAGE.condition(script.source, bindings)[0]
        if script.lang == "jpath":
            return bool(compile_jpath(script.source).select(bindings["value"]))
        value = LANGUAGE.script(script_predicate(script, bindings))
        # In Ale only false is false; in Lua nil is false too.
        return value is not False and (value is not None or script.lang == "ale")

    def value(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        """Return the result of a mapping. Raises Unmapped, MissingInputs, EvaluationFailed, ScriptFailed."""
        if script.lang == "cel":
            return LANGUAGE.expression(script.source, bindings)
        if script.lang == "jpath":
            found = compile_jpath(script.source).select(bindings["value"])
            if not found:
                raise Unmapped
            return found if len(found) > 1 else found[0]
        return LANGUAGE.script(script_predicate(script, bindings))

    def text(self, template: str, bindings: Mapping[str, Any]) -> str:
        """Return a title with its expressions filled in."""
        return str(LANGUAGE.template(template, bindings))

    def names(self, script: Script) -> frozenset[str]:
        """Return the names that a script reads; if it is not CEL, all words in it."""
        if script.lang == "cel":
            return compile_expression(script.source).names
        return frozenset(_WORD.findall(script.source))


class GoalLanguages:
    """Checks scripts and schemas before a definition is stored."""

    def script(self, script: Script, names: Sequence[str]) -> str | None:
        """Return why a script does not compile with these names bound, or None if it does."""
        try:
            if script.lang == "jpath":
                compile_jpath(script.source)
                return None
            if script.lang != "cel":
                compile_script(script.lang, script.source, names)
                return None
            used = compile_expression(script.source).names
        except BadExpression as error:
            return error.message
        except WeftError as error:
            return str(error)
        unknown = sorted(used - set(names))
        return f"the name {unknown[0]} is unknown" if unknown else None

    def schema(self, schema: dict[str, Any]) -> str | None:
        """Return why this is not a JSON Schema, or None if it is."""
        try:
            compile_schema(schema)
        except BadExpression as error:
            return error.message
        return None

    def fits(self, schema: dict[str, Any], raw: bytes) -> str | None:
        """Return why a value does not match the schema, or None if it does."""
        return check_schema(schema, raw)


GOAL_LANGUAGE = GoalLanguage()
GOAL_LANGUAGES = GoalLanguages()
