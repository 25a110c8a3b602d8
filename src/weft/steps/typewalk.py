"""Walk the annotations of a type, to find out whether msgspec or pydantic can read it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

_PYDANTIC_MODULES = ("pydantic", "pydantic_core", "annotated_types")


def is_model(cls: Any) -> bool:
    """Return whether a class is a pydantic model, without importing pydantic."""
    return isinstance(cls, type) and hasattr(cls, "model_validate_json") and hasattr(cls, "model_dump")


def needs_pydantic(type_: Any) -> bool:
    """Return whether only pydantic can check the type: a pydantic model, dataclass or constraint."""
    return any(
        is_model(part)
        or hasattr(part, "__is_pydantic_dataclass__")
        or type(part).__module__.partition(".")[0] in _PYDANTIC_MODULES
        for part in _walk(type_, set())
    )


def unknown_classes(type_: Any) -> set[type]:
    """Return the classes in a type that msgspec does not know."""
    return {part for part in _walk(type_, set()) if isinstance(part, type) and _is_unknown(part)}


def _is_unknown(cls: type) -> bool:
    try:
        return isinstance(msgspec.inspect.type_info(cls), msgspec.inspect.CustomType)
    except TypeError:  # rejected for its contents, which are walked separately
        return False


def _walk(type_: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield every class and every piece of Annotated metadata in a type."""
    origin = typing.get_origin(type_) or type_
    if origin is typing.Literal:
        return
    if origin is typing.Annotated:
        yield from type_.__metadata__
        yield from _walk(type_.__origin__, seen)
        return
    if isinstance(origin, type) and origin is not types.UnionType:
        yield origin
    for part in typing.get_args(type_):
        yield from _walk(part, seen)
    for part in _inside(origin, seen):
        yield from _walk(part, seen)


def _inside(origin: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield the types inside an alias or a class with fields. Each is visited once, as a type may contain itself."""
    if hasattr(origin, "__supertype__"):  # NewType
        inside = [origin.__supertype__]
    elif hasattr(origin, "__value__"):  # type X = ..., from Python 3.12 on
        inside = [origin.__value__]
    elif isinstance(origin, type) and _has_fields(origin):
        inside = _hints(origin)
    else:
        return
    if origin not in seen:
        seen.add(origin)
        yield from inside


def _hints(cls: type) -> list[Any]:
    try:
        return list(typing.get_type_hints(cls, include_extras=True).values())
    except Exception:  # noqa: BLE001  # a name cannot be resolved; the decoder will report it
        return []


def _has_fields(cls: type) -> bool:
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct)
        or typing.is_typeddict(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )
