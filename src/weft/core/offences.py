"""Find the parts of a value that cannot be stored. Used by ``values``. Pure.

``is_plain`` is a quick check that nearly every value passes. The rest finds the offending part and describes it. Both
see a value as the encoder does: dicts, lists, tuples, dataclasses, Structs and pydantic models have parts; other values
have none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec

_SCALARS = frozenset({str, int, bool, float, type(None)})
_NEVER_NAN = _SCALARS - {float}
_STORABLE = "Steps take and return builtins, dataclasses, pydantic or msgspec types. Pass an id instead."


class Offence(NamedTuple):
    """A part of a value that cannot be stored: its path (``.receipt.session``), a description, and a hint."""

    path: str
    kind: str
    hint: str


def to_json(value: object) -> object:
    """Convert what msgspec cannot encode itself: pydantic models, and subclasses of str, int and float."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        # By field name and without computed fields, so that the codec of the model can read it back.
        return dump(value, mode="json", by_alias=False, round_trip=True, warnings="none")
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):  # True gets here as a dict key, and cannot be one
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(type(value).__name__)


encode_json = msgspec.json.Encoder(enc_hook=to_json).encode


def is_plain(value: object, nulls: bool, depth_max: int) -> bool:  # noqa: FBT001  # every microsecond counts here
    """Check quickly that an encoded value can be stored. ``False`` means not proven: the slow check has to decide.

    The encoder writes NaN as null, so floats matter only if there are ``nulls``. The check goes level by level to limit
    the depth.
    """
    scalars = _NEVER_NAN if nulls else _SCALARS
    if type(value) in scalars:
        return True
    level: list[Any] = [value]
    for _ in range(depth_max):
        below: list[Any] = []
        for item in level:
            kind: Any = type(item)
            if kind is dict:
                for key, part in item.items():
                    if type(key) is not str:
                        return False
                    if type(part) not in scalars:
                        below.append(part)
                continue
            parts = item if kind is list else _opener(kind)(item)
            if parts is None:
                return False
            for part in parts:
                if type(part) not in scalars:
                    below.append(part)  # noqa: PERF401  # a comprehension is slower for the few parts that most values have
        if not below:
            return True
        level = below
    return False


def is_too_deep(value: object, depth_max: int) -> bool:
    """Return whether containers are nested deeper than ``depth_max``. True for a value that contains itself."""
    level = [value] if _is_container(value) else []
    for _ in range(depth_max):
        # By identity: a value that contains itself twice would double at every level.
        below = {id(part): part for item in level for _, part in parts(item) if _is_container(part)}
        if not below:
            return False
        level = list(below.values())
    return bool(level)


def offences(value: object, path: str = "") -> Iterator[Offence]:
    """Yield every part of an encodable value that could not be read back unchanged. The value must not be too deep."""
    match value:
        case float() if not math.isfinite(value):
            yield Offence(path, f"the number {float(value)}", "JSON has no nan and no infinity; use None.")
        case str() if "\0" in value:
            yield Offence(path, "a string with a NUL character", "Not every store can hold it; encode or remove it.")
        case str() if not _works(value.encode):
            yield Offence(path, "a string with a lone surrogate", "It is not Unicode; decode it with its own encoding.")
        case AbstractSet():
            yield Offence(path, _a(value), "A set has no order that a replay could repeat; use a sorted list.")
        case msgspec.Raw() if not _works(msgspec.json.decode, value):
            yield Offence(path, "a Raw that is not JSON", "Encode it first.")
        case Mapping():
            yield from _key_offences(value, path)
    for piece, part in parts(value):
        if type(part) not in _NEVER_NAN or type(part) is str:
            yield from offences(part, path + piece)


def unencodable(value: object, error: Exception) -> Offence:
    """Describe the innermost part of ``value`` that the encoder refused with ``error``."""
    path = ""
    while True:
        for piece, part in parts(value):
            if not _works(encode_json, part):
                value, path = part, path + piece
                break
        else:
            break
    if isinstance(value, int):
        return Offence(path, "an integer of more than 4300 digits", "Pass it as a string.")
    if _is_container(value):
        return Offence(path, f"{_a(value)} that cannot be encoded ({error})", _STORABLE)
    return Offence(path, _a(value), _STORABLE)


def _key_offences(value: Mapping[Any, object], path: str) -> Iterator[Offence]:
    seen: dict[str, object] = {}
    for key in value:
        if not _works(encode_json, {key: 0}):
            yield Offence(path, f"a dict with the key {_repr(key)}", "Keys must be strings; numbers become strings.")
            continue
        name = next(iter(msgspec.json.decode(encode_json({key: 0}))))
        if "\0" in name:
            yield Offence(path, "a dict with a NUL character in a key", "Not every store can hold it.")
        if name in seen:
            keys = f"{_repr(seen[name])} and {_repr(key)}"
            yield Offence(path, f"a dict with the keys {keys}", "In JSON they are the same key.")
        seen[name] = key


def parts(value: object) -> Iterator[tuple[str, object]]:
    """Yield the parts of a value, each with its piece of the path. A leaf has none."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{_repr(key)}]", part
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif hasattr(type(value), "model_dump"):
        for name, part in {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}.items():
            yield f".{name}", part
    else:
        kind: Any = type(value)
        for name in _field_names(kind):
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def _is_container(value: object) -> bool:
    kind: Any = type(value)
    if isinstance(value, Mapping | AbstractSet | list | tuple) or hasattr(kind, "model_dump"):
        return True
    return bool(_field_names(kind))


@lru_cache(maxsize=4096)
def _field_names(kind: type) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "__struct_fields__", ())


@lru_cache(maxsize=4096)
def _opener(kind: type) -> Callable[[Any], Iterable[object] | None]:
    """Return the function with which ``is_plain`` gets the parts of an instance.

    A leaf has no parts. None means that only the slow check can tell.
    """
    if issubclass(kind, list | tuple):
        return lambda item: item
    if hasattr(kind, "model_dump"):
        return lambda item: None if getattr(item, "__pydantic_extra__", None) else vars(item).values()
    if issubclass(kind, Mapping | AbstractSet | msgspec.Raw):
        return lambda _: None
    if issubclass(kind, float):
        return lambda item: () if math.isfinite(item) else None
    names = _field_names(cast("Any", kind))
    return _field_opener(names) if names else lambda _: ()


def _field_opener(names: tuple[str, ...]) -> Callable[[Any], Iterable[object] | None]:
    get = attrgetter(*names, names[0])  # the repeated name makes attrgetter return a tuple

    def look(item: object) -> Iterable[object] | None:
        try:
            return get(item)
        except AttributeError:  # never set, so not encoded either; the slow check skips it
            return None

    return look


def _works(attempt: Callable[..., object], *args: object) -> bool:
    try:
        attempt(*args)
    except Exception:  # noqa: BLE001  # the only question is whether it works
        return False
    return True


def _repr(key: object) -> str:
    try:
        return f"{key!r:.60}"
    except Exception:  # noqa: BLE001  # an integer of 5000 digits has no repr; show its type
        return f"<{type(key).__name__}>"


def _a(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
