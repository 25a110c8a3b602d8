"""The current place in a workflow: every asyncio task has its own scope, which counts the uses of each name.

The scope is a context variable, so it is right whichever ``ctx`` the code uses, and in whichever task.

Rules: docs/internals/engine.md#rule-21.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from weft.core.plurals import with_article
from weft.errors import NameTaken

Driver = TypeVar("Driver")


class NameScope(Generic[Driver]):
    """A place below which names are counted. ``prefix`` is readable and ends in a slash, or is empty at the root."""

    __slots__ = ("counts", "driver", "holds_branches", "kinds", "outer", "prefix", "tasks")

    def __init__(self, driver: Driver, prefix: str, outer: NameScope[Driver] | None = None) -> None:
        self.driver = driver
        self.prefix = prefix
        self.outer = outer
        self.holds_branches = False
        self.counts: dict[str, int] = {}
        self.kinds: dict[str, str] = {}
        self.tasks = 0

    def count(self, name: str, kind: str) -> int:
        """Count a use of a name and return its number in this scope. A name identifies only one kind of operation."""
        n = self.counts.get(name, 0) + 1
        self.counts[name] = n
        if n == 1:
            self.kinds[name] = kind
        elif self.kinds[name] != kind:
            raise NameTaken(
                f'"{self.prefix}{name}" names {with_article(self.kinds[name])} and now {with_article(kind)}.',
                hint="Names identify recorded results. Give one of them another name.",
            )
        return n

    def has_entered(self, segment: str) -> bool:
        """Return whether the code has entered this place below the scope."""
        if segment[0] == "&":
            return int(segment[1:]) < self.tasks
        name, _, number = segment.partition("#")
        return self.counts.get(name, 0) >= int(number or 1)

    def for_task(self) -> NameScope[Driver]:
        """Return the scope of the next asyncio task that is created here."""
        inner = NameScope(self.driver, f"{self.prefix}&{self.tasks}/", self)
        self.tasks += 1
        return inner

    def inside(self, name: str, n: int) -> NameScope[Driver]:
        """Return the scope inside a named operation. It contains branches or rounds, but no entries of its own."""
        place = name if n == 1 else f"{name}#{n}"
        return NameScope(self.driver, f"{self.prefix}{place}/", self)

    def branch(self, key: str) -> NameScope[Driver]:
        """Return the scope of one branch or round of the operation that this scope belongs to."""
        self.counts[key] = 1
        self.holds_branches = True
        return NameScope(self.driver, f"{self.prefix}{key}/", self)


CURRENT: ContextVar[NameScope[Any]] = ContextVar("weft_scope")
