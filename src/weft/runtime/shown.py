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
