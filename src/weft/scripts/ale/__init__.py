"""An interpreter for Ale, a small Lisp. It has the part of the language that steps, predicates and mappings use.

Special forms    lambda let let* let-rec if cond case when unless and or begin -> ->> try quote
Numbers          + - * / mod inc dec   > >= < <= = !=   zero? pos? neg? even? odd?
Text, equality   str   eq !eq not      null? string? boolean? keyword? vector? list? object? function? number? empty? …
Sequences        list vector first rest last nth length take drop concat conj cons reverse range map filter reduce
                 fold-left apply seq->vector seq->list seq->object
Objects          {:key value}  (:key object)  (object :key)  get assoc dissoc contains? object

Every predicate has a negation, such as ``!null?``. ``raise`` raises an error, and ``(try … (catch [problem] …))``
catches one.

As in Ale, only ``false`` is false, ``eq`` is strict about types (5 is not 5.0; ``=`` compares numbers), integers may
have any size, the division of integers is exact, and unknown names are errors at compile time. Unlike in Ale, integers
in the input stay integers, sequences are never lazy, ratios in the output become decimals, and steps, memory, time and
depth are bounded.

A script is compiled to Python closures. None of its text is evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from weft.core.values import decode
from weft.scripts.ale.calls import call_value
from weft.scripts.ale.compiler import Compiler
from weft.scripts.ale.forms import SPECIAL
from weft.scripts.ale.meter import AleFault, AleLimitReached, Meter
from weft.scripts.ale.reader import read_forms
from weft.scripts.ale.values import Closure, to_json
from weft.scripts.failures import bad_script, limit_exceeded, script_failed
from weft.scripts.script import CompiledScript

LANGUAGE: Final = "ale"
_NAME: Final = re.compile(r"[^\s()\[\]{}\"';:#\d.+-][^\s()\[\]{}\";]*")
_WORDS: Final = frozenset({"true", "false", "null"})


class AleScript(CompiledScript):
    """A compiled Ale script: a function of its inputs."""

    __slots__ = ("_closure",)

    def __init__(self, source: str, inputs: tuple[str, ...], closure: Closure) -> None:
        super().__init__(LANGUAGE, source, inputs)
        self._closure = closure

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return self._run(values, to_json)

    def holds(self, values: Mapping[str, Any]) -> bool:
        return self._run(values, _truth) is True

    def _run(self, values: Mapping[str, Any], finish: Any) -> Any:
        arguments = decode(self.arguments(values))
        try:
            return finish(call_value(Meter(), self._closure, arguments))
        except AleFault as fault:
            raise script_failed(
                LANGUAGE, fault.message or "the script raised an error without a message", line=fault.line or None
            ) from None
        except AleLimitReached as limit:
            raise limit_exceeded(LANGUAGE, limit.limit) from None
        except RecursionError:  # the caller's stack is so deep that Python's limit is reached first
            raise limit_exceeded(LANGUAGE, "depth") from None


def _truth(value: Any) -> bool:
    return value is not False


def compile_ale(source: str, inputs: tuple[str, ...]) -> AleScript:
    """Compile an Ale script.

    Raises:
        BadScript: an input cannot be a name in Ale, or the text does not compile.
    """
    for name in inputs:
        if not _NAME.fullmatch(name) or name in _WORDS:
            raise bad_script(LANGUAGE, f"the input {name!r} cannot be a name in Ale", hint="Rename the input.")
    forms = read_forms(source)
    if not forms:
        raise bad_script(LANGUAGE, "the script has only comments")
    try:
        shape = Compiler(SPECIAL).function(inputs, forms, None, rest=False)
    except RecursionError:  # the caller's stack is very deep
        raise bad_script(LANGUAGE, "the script is nested too deeply") from None
    return AleScript(source, inputs, Closure(shape, None))
