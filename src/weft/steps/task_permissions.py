"""What the body of the current task may do: which hosts it calls, and which secrets it reveals."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Literal, Protocol


class Permits(Protocol):
    """Says what one task may do."""

    def check(self, action: Literal["host", "secret"], name: str) -> None:
        """Raise NotAllowed (``policy.denied``) if the task may not do this."""
        ...

    def for_process(self) -> Permits:
        """Return the same for another process, which cannot ask the policy."""
        ...


PERMITS: ContextVar[Permits | None] = ContextVar("weft_permits")
"""The permits of the current task. Most tasks have none, and may do everything."""


def check_permitted(action: Literal["host", "secret"], name: str) -> None:
    """Raise NotAllowed (``policy.denied``) if the current task may not do this.

    The name of a host has its port: ``a.example:443``.
    """
    permits = PERMITS.get(None)
    if permits is not None:
        permits.check(action, name)
