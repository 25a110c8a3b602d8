"""Recorded calls, for people."""

from __future__ import annotations

from weft.core import values


def call_shown(step: str, given: bytes) -> str:
    """A call as Python writes it: ``pack("pasta")``, with names where there are several arguments."""
    if values.is_ref(given):
        return f"{step}(…)"
    arguments = values.decode(values.unseal(given))
    if not isinstance(arguments, dict):
        return f"{step}({values.shown(arguments)})"
    if len(arguments) == 1 and step:
        return f"{step}({values.shown(next(iter(arguments.values())))})"
    return f"{step}({', '.join(f'{name}={values.shown(value)}' for name, value in arguments.items())})"


def added_arguments(recorded: bytes, asked: bytes) -> list[str]:
    """The arguments that a call has and the recorded one has not, if they are otherwise the same."""
    if values.is_ref(recorded) or values.is_ref(asked):
        return []
    old, new = values.decode(values.unseal(recorded)), values.decode(values.unseal(asked))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    changed = any(name not in new or new[name] != value for name, value in old.items())
    return [] if changed else [name for name in new if name not in old]
