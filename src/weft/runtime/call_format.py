"""Format recorded calls for people."""

from __future__ import annotations

from weft.core import values


def format_call(step: str, arguments: bytes) -> str:
    """Format a call as in Python: ``pack("pasta")``, with names if there are several arguments."""
    if values.is_ref(arguments):
        return f"{step}(…)"
    decoded = values.decode(values.unseal(arguments))
    if not isinstance(decoded, dict):
        return f"{step}({values.preview_text(arguments)})"
    if len(decoded) == 1 and step:
        return f"{step}({values.preview_text(next(iter(decoded.values())))})"
    return f"{step}({', '.join(f'{name}={values.preview_text(value)}' for name, value in decoded.items())})"


def added_arguments(recorded: bytes, new_call: bytes) -> list[str]:
    """Return the arguments that a call has and the recorded call lacks, if the calls are otherwise equal."""
    if values.is_ref(recorded) or values.is_ref(new_call):
        return []
    old, new = values.decode(values.unseal(recorded)), values.decode(values.unseal(new_call))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    changed = any(name not in new or new[name] != value for name, value in old.items())
    return [] if changed else [name for name in new if name not in old]
