"""Check, compile and cache scripts of every language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from weft.core.findings import did_you_mean
from weft.scripts.failures import bad_script
from weft.scripts.limits import CACHE_MAX, INPUTS_MAX, SOURCE_CHARS_MAX
from weft.scripts.script import CompiledScript


# Errors are not cached. The module of a language is imported when its first script is compiled.
@lru_cache(CACHE_MAX)
def _ale(source: str, inputs: tuple[str, ...]) -> CompiledScript:
    from weft.scripts.ale import compile_ale  # noqa: PLC0415

    return compile_ale(source, inputs)


@lru_cache(CACHE_MAX)
def _lua(source: str, inputs: tuple[str, ...]) -> CompiledScript:
    from weft.scripts.lua import compile_lua  # noqa: PLC0415

    return compile_lua(source, inputs)


COMPILERS: Final[Mapping[str, Callable[[str, tuple[str, ...]], CompiledScript]]] = {"ale": _ale, "lua": _lua}


def compile_script(language: str, source: str, inputs: Sequence[str]) -> CompiledScript:
    """Compile a script that uses these inputs. The same script is compiled once.

    Raises:
        BadScript: the language is unknown, the text does not compile, or a name cannot be an input.
        UsageError: the language is not installed.
    """
    compiler = COMPILERS.get(language)
    if compiler is None:
        hint = did_you_mean(language, COMPILERS, quote="`") or f"The languages are {' and '.join(sorted(COMPILERS))}."
        raise bad_script(language, f"there is no language {language!r}", hint=hint)
    if len(source) > SOURCE_CHARS_MAX:
        raise bad_script(language, f"the script has {len(source):,} characters; the limit is {SOURCE_CHARS_MAX:,}")
    if not source.strip():
        raise bad_script(language, "the script is empty")
    try:
        source.encode()
    except UnicodeEncodeError:
        raise bad_script(language, "the script contains half of a surrogate pair, which is not a character") from None
    names = tuple(sorted(set(inputs)))
    if len(names) > INPUTS_MAX:
        raise bad_script(language, f"the script has {len(names)} inputs; the limit is {INPUTS_MAX}")
    return compiler(source, names)


def evaluate_predicate(language: str, source: str, values: Mapping[str, Any]) -> bool:
    """Return whether a predicate is true for these values. It may use no other names.

    Raises what ``compile_script`` and ``CompiledScript.holds`` raise.
    """
    return compile_script(language, source, tuple(values)).holds(values)
