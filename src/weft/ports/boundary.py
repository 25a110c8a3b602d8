"""Named places in the code where a crash would matter. They do nothing, except in tests.

A test installs a hook that ends the process at the n-th call, and tries every n. The names also show which places a
test reached.
"""

from __future__ import annotations

from collections.abc import Callable


class ProcessDied(BaseException):
    """Raised in a callback when its simulated process dies. Nothing may catch it."""


Hook = Callable[[str], None]
hook: Hook | None = None
"""The installed hook. Code that runs for every step asks for it first, and saves the call of ``boundary``."""


def boundary(name: str) -> None:
    """Mark a place in the code where a crash would matter. Calls the installed hook, if there is one."""
    if hook is not None:
        hook(name)


def set_hook(new: Hook | None) -> Hook | None:
    """Call ``new`` with the name of every boundary from now on. Returns the previous hook."""
    global hook
    before, hook = hook, new
    return before
