"""Find the parts of a value that cannot be stored. Used by ``values``. Pure.

Nearly every value passes ``passes_quick_check``. For the others, ``unstorable_parts`` finds the parts that cannot be
stored and describes them. Both see a value as the encoder does: dicts, lists, tuples, dataclasses, Structs and pydantic
models have parts; other values have none.
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

from weft.core.plurals import with_article

_SCALARS = frozenset({str, int, bool, float, type(None)})
_NEVER_NAN = _SCALARS - {float}
_NAMES = frozenset({str})
_STORABLE = "Steps take and return builtins, dataclasses, pydantic or msgspec types. Pass an id instead."


class UnstorablePart(NamedTuple):
    """A part of a value that cannot be stored: its path (``.receipt.session``), a description, and a hint."""

    path: str
    description: str
    hint: str


def to_encodable(value: object) -> object:
    """Convert a value that msgspec cannot encode itself: a pydantic model, or a subclass of str, int or float."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        # Use field names and leave out computed fields, so that the model can read the result.
        return dump(value, mode="json", by_alias=False, round_trip=True, warnings="none")
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(
        value, bool
    ):  # msgspec calls this for bools used as dict keys, which JSON does not allow
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise TypeError(type(value).__name__)


encode_json = msgspec.json.Encoder(enc_hook=to_encodable).encode


def passes_quick_check(value: object, raw: bytes, depth_max: int) -> bool:
    """Check quickly that a value encoded as ``raw`` can be stored. If the result is False, the slow check must decide.

    The encoder writes NaN as null, so floats are checked only if there are nulls. The check goes level by level to
    limit the depth.
    """
    if type(value) in _NEVER_NAN:
        return True
    if type(value) is dict and _NAMES.issuperset(map(type, value)) and _NEVER_NAN.issuperset(map(type, value.values())):
        return True  # most values
    scalars = _NEVER_NAN if raw.find(b"null") >= 0 else _SCALARS
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
            parts = item if kind is list else _part_reader(kind)(item)
            if parts is None:
                return False
            for part in parts:
                if type(part) not in scalars:
                    below.append(part)  # noqa: PERF401  # for few parts, a comprehension is slower
        if not below:
            return True
        level = below
    return False


def is_too_deep(value: object, depth_max: int) -> bool:
    """Return whether containers are nested deeper than ``depth_max``. True for a value that contains itself."""
    level = [value] if _is_container(value) else []
    for _ in range(depth_max):
        # Collect by identity, because a value that contains itself twice would double at every level.
        below = {id(part): part for item in level for _, part in child_values(item) if _is_container(part)}
        if not below:
            return False
        level = list(below.values())
    return bool(level)


def is_storable_text(text: str) -> bool:
    """Return whether every store can hold a text: it is Unicode and has no NUL."""
    return "\0" not in text and _does_not_raise(text.encode)


def unstorable_parts(value: object, path: str = "") -> Iterator[UnstorablePart]:
    """Yield every part of an encodable value that could not be read back unchanged. Call ``is_too_deep`` first."""
    match value:
        case float() if not math.isfinite(value):
            yield UnstorablePart(path, f"the number {float(value)}", "JSON has no nan and no infinity; use None.")
        case str() if "\0" in value:
            yield UnstorablePart(
                path, "a string with a NUL character", "Not every store accepts NUL; encode or remove it."
            )
        case str() if not _does_not_raise(value.encode):
            yield UnstorablePart(
                path, "a string with a lone surrogate", "The text is not Unicode; decode it with its own encoding."
            )
        case AbstractSet():
            yield UnstorablePart(
                path,
                with_article(type(value).__name__),
                "A set has no order that a replay could repeat; use a sorted list.",
            )
        case msgspec.Raw() if not _does_not_raise(msgspec.json.decode, value):
            yield UnstorablePart(path, "a Raw that is not JSON", "Encode the value first.")
        case Mapping():
            yield from _unstorable_keys(value, path)
    for piece, part in child_values(value):
        if type(part) not in _NEVER_NAN or type(part) is str:
            yield from unstorable_parts(part, path + piece)


def find_unencodable(value: object, error: Exception) -> UnstorablePart:
    """Describe the innermost part of ``value`` that the encoder refused with ``error``."""
    path = ""
    while True:
        for piece, part in child_values(value):
            if not _does_not_raise(encode_json, part):
                value, path = part, path + piece
                break
        else:
            break
    if isinstance(value, int):
        return UnstorablePart(path, "an integer of more than 4300 digits", "Pass the number as a string.")
    if _is_container(value):
        return UnstorablePart(path, f"{with_article(type(value).__name__)} that cannot be encoded ({error})", _STORABLE)
    return UnstorablePart(path, with_article(type(value).__name__), _STORABLE)


def _unstorable_keys(value: Mapping[Any, object], path: str) -> Iterator[UnstorablePart]:
    seen: dict[str, object] = {}
    for key in value:
        if not _does_not_raise(encode_json, {key: 0}):
            yield UnstorablePart(
                path, f"a dict with the key {_safe_repr(key)}", "Keys must be strings or numbers, which become strings."
            )
            continue
        name = next(iter(msgspec.json.decode(encode_json({key: 0}))))
        if "\0" in name:
            yield UnstorablePart(
                path, "a dict with a NUL character in a key", "Not every store accepts NUL; encode or remove it."
            )
        if name in seen:
            keys = f"{_safe_repr(seen[name])} and {_safe_repr(key)}"
            yield UnstorablePart(path, f"a dict with the keys {keys}", "In JSON, these are the same key.")
        seen[name] = key


def child_values(value: object) -> Iterator[tuple[str, object]]:
    """Yield the parts of a value, each with its piece of the path (``.name``, ``[0]``). A scalar has no parts."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{_safe_repr(key)}]", part
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
def _part_reader(kind: type) -> Callable[[Any], Iterable[object] | None]:
    """Return the function with which ``passes_quick_check`` gets the parts of an instance of a type.

    A scalar has no parts. If the function returns None, only the slow check can decide.
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
    return _field_reader(names) if names else lambda _: ()


def _field_reader(names: tuple[str, ...]) -> Callable[[Any], Iterable[object] | None]:
    get = attrgetter(*names, names[0])  # the repeated name makes attrgetter return a tuple

    def read(item: object) -> Iterable[object] | None:
        try:
            return get(item)
        except AttributeError:  # a field that was never set is not encoded; the slow check skips it
            return None

    return read


def _does_not_raise(attempt: Callable[..., object], *args: object) -> bool:
    try:
        attempt(*args)
    except Exception:  # noqa: BLE001  # any error means that it does not work
        return False
    return True


def _safe_repr(key: object) -> str:
    try:
        return f"{key!r:.60}"
    except Exception:  # noqa: BLE001  # a key may have no repr, such as an integer of 5,000 digits
        return f"<{type(key).__name__}>"
