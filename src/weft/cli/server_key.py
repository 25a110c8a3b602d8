"""The option ``--key``: the API key for a server. Every command that has ``--url`` also has it."""

from __future__ import annotations

from contextvars import ContextVar

_given: ContextVar[str | None] = ContextVar("weft_server_key", default=None)


def remember_key(key: str | None) -> None:
    """Keep the key that was given to the command, until the next command."""
    _given.set(key)


def server_key() -> str | None:
    """Return the key that was given to the command, if any."""
    return _given.get()
