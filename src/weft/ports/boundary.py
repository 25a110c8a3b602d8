"""Named places in the code where a crash would matter. They do nothing, except in tests.

A test installs a hook that ends the process at the n-th call, and tries every n. The names also show which places a
test reached.
"""

from __future__ import annotations

from collections.abc import Callable


class ProcessDied(BaseException):
    """Raised in a callback when its simulated process dies. Nothing may catch it."""


Hook = Callable[[str], None]
_hook: Hook | None = None


def boundary(name: str) -> None:
    """Mark a place in the code where a crash would matter. Calls the installed hook, if there is one."""
    if _hook is not None:
        _hook(name)


def set_hook(hook: Hook | None) -> Hook | None:
    """Call ``hook`` with the name of every boundary from now on. Returns the previous hook."""
    global _hook
    before, _hook = _hook, hook
    return before
