"""Switch off a rule by changing a few words of the source of a module, for as long as a block lasts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any


@contextmanager
def changed_source(module: ModuleType, old: str, new: str) -> Iterator[None]:
    """Let the functions of a module do what the changed text says. The text must be there exactly once."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{module.__name__} has {source.count(old)} times: {old}"
    codes = dict(_codes(compile(source.replace(old, new), module.__file__ or "", "exec", dont_inherit=True)))
    functions = [one for one in _functions(module) if one.__code__.co_qualname in codes]
    before = [one.__code__ for one in functions]
    try:
        for one in functions:
            one.__code__ = codes[one.__code__.co_qualname]
        yield
    finally:
        for one, code in zip(functions, before, strict=True):
            one.__code__ = code


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, constant
            yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of a module and of its classes."""
    places: list[Any] = [module, *(one for one in vars(module).values() if isinstance(one, type))]
    for place in places:
        for found in vars(place).values():
            if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                yield found
