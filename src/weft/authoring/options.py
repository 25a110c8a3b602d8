"""Refuse options that a registration does not have, and name the option that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.authoring.function_places import function_name, place_of_function
from weft.errors import UsageError


def options_of(registration: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the keyword arguments of a registration that have defaults."""
    return frozenset(getattr(registration, "__kwdefaults__", None) or {})


def check_options(kind: str, fn: Callable[..., Any], given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Check the options of a step or workflow that is registered. Raises UsageError for one that does not exist."""
    names = sorted(known)
    unknown = [option for option in given if option not in names]
    if not unknown:
        return
    close = difflib.get_close_matches(unknown[0], names, n=1)
    meant = f'Did you mean "{close[0]}"? ' if close else ""
    name = given.get("name") or function_name(fn)
    raise UsageError(
        f'The {kind} {name} has no option "{unknown[0]}".',
        hint=f"{meant}The options of a {kind} are {', '.join(names)}.   [{place_of_function(fn)}]",
    )


def only_function(kind: str, given: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the one function that is registered. Raises UsageError for anything else, such as a name."""
    if len(given) == 1 and callable(given[0]):
        return given[0]  # type: ignore[no-any-return]
    said = ", ".join(repr(one)[:60] for one in given)
    raise UsageError(
        f"@app.{kind}({said}) does not register a function.",
        hint=f'Write @app.{kind} above the function, or @app.{kind}(name="...") to give it another name.',
    )
