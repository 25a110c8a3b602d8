"""Encode, check, decode and describe values of one user type as JSON.

The receiver always gets ``decode(encode(x))``, even in the same process. Types are strict: ``"17"`` is not ``17``, but
an integer is a number. msgspec reads every type it knows. A type that contains a pydantic model, or that msgspec
rejects, is read by a pydantic ``TypeAdapter``, and pydantic is imported only then.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import lru_cache
from types import NoneType
from typing import Any, Generic, TypeVar

import msgspec

from weft.core.unstorable import encode_json
from weft.core.values import check_storable, encode
from weft.errors import BadValue
from weft.steps.misfits import Misfit, misfit_of
from weft.steps.raised import ends_host
from weft.steps.type_schemas import schema_of_native
from weft.steps.typewalk import is_model, needs_pydantic, unknown_classes

T = TypeVar("T")

# Type forms that decoders do not know, and the types that replace them.
_PLAIN: dict[Any, Any] = {
    None: NoneType,
    inspect.Parameter.empty: Any,
    typing.NoReturn: Any,
    typing.Never: Any,
    typing.LiteralString: str,
}
# Each value of these Python types has the type, so it is not decoded to check it.
_EXACT: dict[Any, type] = {
    **{one: one for one in (str, int, bool, float, NoneType)},
    **dict.fromkeys((dict, dict[str, Any]), dict),
    **dict.fromkeys((list, list[Any]), list),
}


class Codec(Generic[T]):
    """The codec of one type. ``Codec.of`` returns a cached one."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self._exact = _EXACT.get(type_) if _is_hashable(type_) else None
        self._backend: _Native | _Adapter = _backend_for(type_)
        self.read: Callable[[bytes], T] = self._backend.read
        """Decodes a value, bytes or a ``Raw``. Raises ``Misfit``, for callers that write their own message."""
        self.is_native = isinstance(self._backend, _Native)
        """Whether msgspec alone reads this type, so that it can be the type of a Struct field."""

    @staticmethod
    def of(type_: Any) -> Codec[Any]:
        """Return the codec of a type. ``inspect.Parameter.empty`` (no annotation) means Any.

        Raises:
            BadValue: no value of this type can be stored.
        """
        return _codec_of(_PLAIN.get(type_, type_)) if _is_hashable(type_) else Codec(type_)

    def encode(self, value: T, *, what: str = "got") -> bytes:
        """Encode a value as JSON and check its type. ``what`` begins the message of an error: "charge returned".

        Raises:
            BadValue: the value is not JSON (``value.not_json``) or not of this type (``value.wrong_type``).
            LimitExceeded: the value is too big or too deeply nested.
        """
        if type(value) is self._exact:
            return encode(value, what=what)
        dumped = value if self.is_native else self.dump(value, what=what)
        raw = encode(dumped, what=what)
        if dumped is not value:
            check_storable(value, raw, what=what)
        if self.type is not Any:
            try:
                self.read(raw)
            except Misfit as misfit:
                raise _wrong_type(misfit, what) from misfit.__cause__
        return raw

    def dump(self, value: T, *, what: str, name: str = "") -> Any:
        """Return the value, converted to builtins if only pydantic can encode it.

        ``name`` is the field of a bigger value that the value is for.

        Raises:
            BadValue: pydantic cannot encode it.
        """
        try:
            return self._backend.dump(value)
        except BaseException as error:
            if ends_host(error):
                raise
            encode({name: value} if name else value, what=what)  # names the part, if possible
            raise BadValue(f"{what} a value that cannot be encoded: {_first_line(error)}.", path=name) from error

    def decode(self, raw: bytes, *, what: str = "got") -> T:
        """Decode a value from JSON.

        Raises:
            BadValue: the JSON is not of this type (``value.wrong_type``).
        """
        try:
            return self.read(raw)
        except Misfit as misfit:
            raise _wrong_type(misfit, what) from misfit.__cause__

    def schema(self) -> dict[str, object]:
        """Return the JSON Schema that ``decode`` accepts, with ``$defs`` at the top."""
        return self._backend.schema()


def _wrong_type(misfit: Misfit, what: str) -> BadValue:
    return BadValue(misfit.sentence(what), code="value.wrong_type", path=misfit.path)


@lru_cache(maxsize=4096)
def _codec_of(type_: Any) -> Codec[Any]:
    return Codec(type_)


class _Native:
    """Uses msgspec, and the model's own codec for each pydantic model inside."""

    def __init__(self, type_: Any) -> None:
        self._type = type_
        self._decode = native_decoder(type_)

    def dump(self, value: Any) -> Any:
        return value

    def read(self, raw: bytes) -> Any:
        try:
            return self._decode(raw)
        except BaseException as error:
            if ends_host(error):
                raise
            raise misfit_of(error, bytes(raw)) from error  # a validator may raise anything

    def schema(self) -> dict[str, object]:
        return schema_of_native(self._type)


class _Adapter:
    """Uses pydantic for the whole type."""

    def __init__(self, type_: Any) -> None:
        from pydantic import TypeAdapter  # noqa: PLC0415  # slow to import, and most programs never need it

        self._adapter: Any = TypeAdapter(type_)

    def dump(self, value: Any) -> Any:
        return self._adapter.dump_python(value, mode="json", round_trip=True, by_alias=False, warnings="none")

    def read(self, raw: bytes) -> Any:
        raw = bytes(raw)
        try:
            if b"NaN" in raw or b"Infinity" in raw:
                msgspec.json.decode(raw)  # pydantic accepts these as numbers; in JSON they occur only inside strings
            return self._adapter.validate_json(raw, strict=True, by_alias=True, by_name=True)
        except BaseException as error:
            if ends_host(error):
                raise
            raise misfit_of(error, bytes(raw)) from error  # a validator may raise anything

    def schema(self) -> dict[str, object]:
        return self._adapter.json_schema()  # type: ignore[no-any-return]


def native_decoder(type_: Any) -> Callable[[bytes], Any]:
    """Return the msgspec decoder of a type. Its errors can be passed to ``misfit_of``."""
    return msgspec.json.Decoder(type_, dec_hook=_read_model).decode


def _read_model(model: type, value: Any) -> Any:
    return Codec.of(model).read(encode_json(value))


def _backend_for(type_: Any) -> _Native | _Adapter:
    """Choose msgspec if it knows the whole type, or else pydantic, or else msgspec with pydantic for models inside."""
    why: Exception | None = None
    unknown = unknown_classes(type_)
    if not unknown and not needs_pydantic(type_):
        try:
            return _Native(type_)
        except TypeError as error:  # such as an ambiguous union, or an Enum with mixed values
            why = error
    try:
        return _Adapter(type_)
    except Exception as error:  # noqa: BLE001  # pydantic rejects types with several kinds of error
        why = why or error
    if all(is_model(cls) for cls in unknown):
        try:
            return _Native(type_)
        except TypeError as error:
            why = error
    unsupported = sorted(cls.__name__ for cls in unknown if not is_model(cls))
    reason = "" if unsupported else f" {_first_line(why)}."
    raise BadValue(
        f"{', '.join(unsupported) or _name(type_)} is not a type that can be stored.{reason}",
        hint="Steps take and return builtins, dataclasses, pydantic or msgspec types. "
        "A parameter that is a resource has the default weft.injected.",
    ) from why


def _name(type_: Any) -> str:
    return type_.__name__ if isinstance(type_, type) else str(type_)


def _is_hashable(type_: Any) -> bool:
    try:
        hash(type_)
    except TypeError:  # such as Annotated with a list
        return False
    return True


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")
