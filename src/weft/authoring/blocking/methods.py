"""Make blocking methods from async ones: the same arguments, the same result, without ``await``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from weft.authoring.blocking.calls import LoopCalls, refuse_running_loop

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

PAGE = 100
"""How many items of a finite list are fetched at once."""


class BlockingMethod(Protocol[P, T_co]):
    """A method that blocks, as type checkers see it."""

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[P, T_co]: ...


class Blocking(Generic[S]):
    """The base of objects whose methods run on the event loop of another thread.

    ``calls`` gives the calls of that loop, and opens it at first use. ``target`` gives the async object there: after
    the engine was opened again, it is another one.
    """

    def __init__(self, calls: Callable[[], LoopCalls], target: Callable[[], S], name: str) -> None:
        self._calls = calls
        self._target = target
        self._name = name
        """What users write for it, for errors."""

    def _run(self, method: str, make: Callable[[S], Coroutine[Any, Any, T]]) -> T:
        refuse_running_loop(f"{self._name}.{method}(...)")

        async def perform() -> T:
            return await make(self._target())

        return self._calls().run(perform())

    def _iterate(self, method: str, make: Callable[[S], AsyncIterator[T]], *, page: int = PAGE) -> Iterator[T]:
        refuse_running_loop(f"{self._name}.{method}(...)")
        return self._pages(make, page)

    def _pages(self, make: Callable[[S], AsyncIterator[T]], page: int) -> Iterator[T]:
        calls = self._calls()
        found: AsyncIterator[T] | None = None

        async def fetch() -> list[T]:
            nonlocal found
            if found is None:
                found = make(self._target())
            items: list[T] = []
            async for item in found:
                items.append(item)
                if len(items) == page:
                    break
            return items

        # The loop closes an async iterator that nobody uses any more; waiting for it here could block that loop.
        while items := calls.run(fetch()):
            yield from items


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> BlockingMethod[P, T]:
    """Return the blocking form of an async method, for a subclass of ``Blocking``."""
    name = method.__name__

    @wraps(method)
    def call(self: Blocking[Any], *args: P.args, **kwargs: P.kwargs) -> T:
        # By name: a handle of a server has methods of its own.
        answer: T = self._run(name, lambda target: getattr(target, name)(*args, **kwargs))
        return answer

    return cast("BlockingMethod[P, T]", call)
