"""The languages of goals: predicates, matches and mappings in CEL, jpath, Lua and Ale; whether one can be read at all.

CEL and jpath are evaluated inside a decision. Lua and Ale are asked of the shell, which may take its time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.conditions import BadExpression, compile_expression, compile_jpath
from weft.conditions.schemas import compile_schema
from weft.core.goal.definitions import Script
from weft.core.goal.scripts import Unmapped, question
from weft.errors import WeftError
from weft.runtime.language import LANGUAGE
from weft.runtime.schemas import check_schema
from weft.scripts import compile_script

_WORD = re.compile(r"[A-Za-z_][\w-]*")


class GoalLanguage:
    """Evaluates what authors of steps wrote."""

    def holds(self, script: Script, bindings: Mapping[str, Any]) -> bool:
        """Whether a predicate or match holds. Raises MissingInputs, EvaluationFailed, ScriptFailed."""
        if script.lang == "cel":
            return LANGUAGE.condition(script.source, bindings)[0]
        if script.lang == "jpath":
            return bool(compile_jpath(script.source).select(bindings["value"]))
        value = LANGUAGE.script(question(script, bindings))
        # To Ale only false is false; to Lua nil is as well.
        return value is not False and (value is not None or script.lang == "ale")

    def value(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        """What a mapping makes of its value. Raises Unmapped, MissingInputs, EvaluationFailed, ScriptFailed."""
        if script.lang == "cel":
            return LANGUAGE.expression(script.source, bindings)
        if script.lang == "jpath":
            found = compile_jpath(script.source).select(bindings["value"])
            if not found:
                raise Unmapped
            return found if len(found) > 1 else found[0]
        return LANGUAGE.script(question(script, bindings))

    def text(self, template: str, bindings: Mapping[str, Any]) -> str:
        """A title with its expressions filled in."""
        return str(LANGUAGE.template(template, bindings))

    def names(self, script: Script) -> frozenset[str]:
        """The names that a script looks at; if it is not CEL, all words in it."""
        if script.lang == "cel":
            return compile_expression(script.source).names
        return frozenset(_WORD.findall(script.source))


class GoalLanguages:
    """What can be read: asked before a definition is stored."""

    def script(self, script: Script, names: Sequence[str]) -> str | None:
        """None, or why it does not compile with these names bound."""
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
        return f"nothing is called {unknown[0]}" if unknown else None

    def schema(self, schema: dict[str, Any]) -> str | None:
        """None, or why it is no JSON Schema."""
        try:
            compile_schema(schema)
        except BadExpression as error:
            return error.message
        return None

    def fits(self, schema: dict[str, Any], raw: bytes) -> str | None:
        """None, or what is wrong with a value."""
        return check_schema(schema, raw)


GOAL_LANGUAGE = GoalLanguage()
GOAL_LANGUAGES = GoalLanguages()
