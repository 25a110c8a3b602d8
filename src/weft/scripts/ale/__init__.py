"""Ale, a small Lisp: our own interpreter for the part that steps, predicates and mappings use.

Special forms    lambda let let* let-rec if cond case when unless and or begin -> ->> try quote
Numbers          + - * / mod inc dec   > >= < <= = !=   zero? pos? neg? even? odd?
Text, equality   str   eq !eq not      null? string? boolean? keyword? vector? list? object? function? number? empty? …
Sequences        list vector first rest last nth length take drop concat conj cons reverse range map filter reduce
                 fold-left apply seq->vector seq->list seq->object
Objects          {:key value}  (:key object)  (object :key)  get assoc dissoc contains? object
Every predicate has a negation: `!null?`. `raise` ends a script, `(try … (catch [problem] …))` catches what was raised.

As in Ale: only `false` is false, `eq` is strict about types (5 is not 5.0, `=` compares numbers), integers widen, an
integer division is exact, unknown names are refused when compiled. Unlike in Ale: integers stay integers on
the way in, sequences are never lazy, ratios come out as decimals, and steps, memory, time and depth are bounded.

A script is compiled to Python closures; nothing of it is ever evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from weft.core.values import decode
from weft.scripts.ale.calls import apply
from weft.scripts.ale.compiler import Compiler
from weft.scripts.ale.forms import SPECIAL
from weft.scripts.ale.meter import AleFault, AleLimitReached, Meter
from weft.scripts.ale.reader import read
from weft.scripts.ale.values import Closure, to_json
from weft.scripts.failures import bad_script, failed, too_much
from weft.scripts.script import CompiledScript

LANGUAGE: Final = "ale"
_NAME: Final = re.compile(r"[^\s()\[\]{}\"';:#\d.+-][^\s()\[\]{}\";]*")
_WORDS: Final = frozenset({"true", "false", "null"})


class AleScript(CompiledScript):
    """A lambda over the inputs."""

    __slots__ = ("_closure",)

    def __init__(self, source: str, inputs: tuple[str, ...], closure: Closure) -> None:
        super().__init__(LANGUAGE, source, inputs)
        self._closure = closure

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return self._run(values, to_json)

    def holds(self, values: Mapping[str, Any]) -> bool:
        return self._run(values, _truth) is True

    def _run(self, values: Mapping[str, Any], finish: Any) -> Any:
        given = decode(self.arguments(values))
        try:
            return finish(apply(Meter(), self._closure, given))
        except AleFault as fault:
            raise failed(LANGUAGE, fault.message or "it raised nothing", line=fault.line or None) from None
        except AleLimitReached as limit:
            raise too_much(LANGUAGE, limit.limit) from None
        except RecursionError:  # the caller's stack is so deep that Python's limit comes before ours
            raise too_much(LANGUAGE, "depth") from None


def _truth(value: Any) -> bool:
    return value is not False


def compile_ale(source: str, inputs: tuple[str, ...]) -> AleScript:
    """Read and compile the script.

    Raises:
        BadScript: it cannot be read, or it uses a name that nobody knows.
    """
    for name in inputs:
        if not _NAME.fullmatch(name) or name in _WORDS:
            raise bad_script(LANGUAGE, f"the input {name!r} cannot be a name in Ale", hint="Rename it.")
    forms = read(source)
    if not forms:
        raise bad_script(LANGUAGE, "it has only comments")
    try:
        shape = Compiler(SPECIAL).function(inputs, forms, None, rest=False)
    except RecursionError:  # the caller's stack is very deep
        raise bad_script(LANGUAGE, "it is nested too deeply") from None
    return AleScript(source, inputs, Closure(shape, None))
