"""The signature of a function: bind the arguments of a call to JSON, check them, and unpack them for the function.

The input is a JSON object of the given arguments, in the order of the parameters, without defaults. A run also records
the defaults of its workflow. A step uses the current defaults of its function.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import msgspec

if sys.version_info >= (3, 14):
    import annotationlib

from weft.core.values import check_storable, decode, encode, preview_text
from weft.errors import BadValue, UsageError, WeftError
from weft.steps.codec import Codec, native_decoder
from weft.steps.misfits import Misfit, misfit_of
from weft.steps.step_arguments import StepArguments
from weft.steps.type_schemas import schema_of_object

NOTHING = b"{}"
"""The input of a call without arguments."""
_NOT_STARTED = "Nothing was started."
_CHANGED = "Change the function so that it also accepts the recorded value."
_Kind = inspect.Parameter
_UNNAMED: dict[Any, str] = {
    _Kind.POSITIONAL_ONLY: 'Remove the "/" after {name}.',
    _Kind.VAR_POSITIONAL: "Take a list instead: {name}: list[...].",
    _Kind.VAR_KEYWORD: "Take a dict instead: {name}: dict[str, ...].",
}


class _Absent:
    """Marks an argument that was not given, in the decoded struct."""


_ABSENT = _Absent()


class _InjectedMark:
    """The default of a parameter that is a resource."""

    def __repr__(self) -> str:
        return "weft.injected"


injected: Any = _InjectedMark()
"""The default of a step's parameter that is a resource: ``pool: Pool = weft.injected``. Callers leave it out."""


class Injected(msgspec.Struct, frozen=True):
    """A parameter that is a resource, which the host finds by its type or its name."""

    name: str
    type: Any
    required: bool = True
    """False for a parameter of a resource that has a default of its own."""


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a function. ``default`` is used only if the parameter is not ``required``."""

    name: str
    required: bool
    type: Any
    default: Any
    codec: Codec[Any]


class Signature:
    """The parameters and the result of a step or workflow."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        positional: Sequence[str],
        result: Codec[Any],
        *,
        takes_context: bool,
        injected: Sequence[Injected] = (),
    ) -> None:
        self.parameters = tuple(parameters)
        self.injected = tuple(injected)
        """The parameters that are resources. They are not among ``parameters``."""
        self.result = result
        self.takes_context = takes_context
        self._positional = tuple(positional)
        self._names = {parameter.name: parameter for parameter in parameters}
        self._required = tuple(parameter.name for parameter in parameters if parameter.required)
        # Fields that only pydantic can read stay raw in the struct. Their own codec reads them.
        self._adapted = {p.name: p.codec for p in parameters if not p.codec.is_native}
        self._decode = _decoder_for(parameters)

    @cached_property
    def _defaults(self) -> dict[str, msgspec.Raw]:
        return {p.name: raw for p in self.parameters if not p.required and (raw := _json_default(p)) is not None}

    @staticmethod
    def of(fn: Callable[..., object], *, context_type: type | None = None) -> Signature:
        """Read a function's signature. A first parameter that is the context is omitted, because it is injected.

        Raises:
            UsageError: a parameter is positional-only, ``*args`` or ``**kwargs``. Recorded arguments need names.
            BadValue: no value of a declared type can be stored.
        """
        raw = _signature(fn)
        hints = _annotated_types(fn, raw)
        found = list(raw.parameters.values())
        takes_context = bool(found) and _is_context(found[0], hints, context_type)
        resources = _resource_parameters(fn, found, hints)
        given = [p for p in found[1 if takes_context else 0 :] if p.default is not injected]
        parameters = [_parameter(fn, each, hints) for each in given]
        positional = [p.name for p in given if p.kind is _Kind.POSITIONAL_OR_KEYWORD]
        result = _codec(f"{_function_name(fn)}() ->", hints.get("return", _Kind.empty))
        return Signature(parameters, positional, result, takes_context=takes_context, injected=resources)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, what: str) -> bytes:
        """Bind the arguments of a call as Python does, and check them. ``what`` is the name of the function.

        Raises:
            BadValue: an argument is missing, unknown, of another type (``value.wrong_type``), or not JSON.
            LimitExceeded: the arguments together are too big or too deep.
        """
        if not args and not kwargs and not self._required:
            return NOTHING
        given = dict(zip(self._positional, args, strict=False))
        if len(args) > len(self._positional):
            takes = len(self._positional)
            raise _wrong(f"{what}() takes {takes} positional argument{'s'[: takes != 1]}, got {len(args)}.")
        if kwargs:
            given = self._with_names(given, kwargs, what)
        for name in self._required:
            if name not in given:
                raise _missing_arguments([name for name in self._required if name not in given], what)
        raw = self._encode(given, what)
        self._read(raw, what, _NOT_STARTED)
        return raw

    def from_mapping(self, mapping: Mapping[str, Any], *, what: str) -> bytes:
        """Bind arguments given by name, from a document or the command line."""
        return self.bind((), mapping, what=what)

    def unpack(self, raw: bytes, defaults: bytes = b"", *, what: str) -> dict[str, Any]:
        """Return the typed keyword arguments for the function. Missing ones come from ``defaults`` or the function.

        Raises:
            BadValue: the recorded input does not match this signature, because the code has changed since then. The
                hint says how to change the function.
        """
        if raw == NOTHING and not self._required and not defaults:
            return {}
        if defaults and raw.lstrip()[:1] == b"{":
            recorded = {name: value for name, value in _objects(defaults).items() if name in self._names}
            raw = msgspec.json.encode({**recorded, **_objects(raw)})
        return self._read(raw, what, _CHANGED)

    def defaults(self, given: bytes | None) -> bytes:
        """Return the defaults of the parameters that an input omits, as JSON; empty if there are none.

        A default that JSON cannot represent exactly is omitted, so the function's own default is used.
        """
        known = self._defaults
        if known and given is not None:
            named = _objects(given)
            known = {name: value for name, value in known.items() if name not in named}
        return msgspec.json.encode(known) if known else b""

    def arguments(self) -> StepArguments:
        """Return the names of the arguments."""
        return StepArguments([one.name for one in self.parameters], list(self._required))

    def schema(self) -> dict[str, object]:
        """Return the JSON Schema of the input."""
        return schema_of_object({p.name: _with_default(p) for p in self.parameters}, list(self._required))

    def _with_names(self, given: dict[str, Any], kwargs: Mapping[str, Any], what: str) -> dict[str, Any]:
        for name in kwargs:
            if name not in self._names:
                raise self._unknown_argument(name, what, _NOT_STARTED)
            if name in given:
                raise _wrong(f"{what}() got {name} twice.")
        both = {**given, **kwargs}
        return {name: both[name] for name in self._names if name in both}

    def _refuse_names(self, raw: bytes, what: str, hint: str) -> None:
        """Reject an input in which a required argument is missing, or that has an unknown argument."""
        given = decode(raw)
        if not isinstance(given, dict):
            return
        for name in given:
            if name not in self._names:
                keep = f"Keep the parameter {name}, with a default." if hint is _CHANGED else hint
                raise self._unknown_argument(name, what, keep)
        missing = [name for name in self._required if name not in given]
        if missing:
            raise _missing_arguments(
                missing, what, f"Give {', '.join(missing)} a default." if hint is _CHANGED else hint
            )

    def _unknown_argument(self, name: str, what: str, hint: str) -> BadValue:
        if any(name == each.name for each in self.injected):
            message = f"{name} is a resource of {what}, so it cannot be given as an input."
            return _wrong(
                message, f"Leave it out. In a test: {what}.fn(..., {name}=...)", [(name, "It is a resource.")]
            )
        return _unknown_argument(name, what, self._names, hint)

    def _encode(self, given: dict[str, Any], what: str) -> bytes:
        got = f"{what}() got"
        if not self._adapted:
            return encode(given, what=got)
        dumped = {name: self._names[name].codec.dump(value, what=got, name=name) for name, value in given.items()}
        raw = encode(dumped, what=got)
        check_storable(given, raw, what=got)
        return raw

    def _read(self, raw: bytes, what: str, hint: str) -> dict[str, Any]:
        try:
            call = self._decode(raw)
        except Exception as error:
            self._refuse_names(raw, what, hint)
            raise _misfit(misfit_of(error, raw), raw, what, hint) from error
        arguments: dict[str, Any] = msgspec.structs.asdict(call)
        if len(arguments) != len(self._required):
            arguments = {name: value for name, value in arguments.items() if value is not _ABSENT}
        for name, codec in self._adapted.items():
            if name in arguments:
                try:
                    arguments[name] = codec.read(bytes(arguments[name]))
                except Misfit as misfit:
                    raise _misfit(misfit.below(name), raw, what, hint) from misfit.__cause__
        return arguments


_objects = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _json_default(parameter: Parameter) -> msgspec.Raw | None:
    """Return a default as JSON, or None if JSON cannot represent it exactly."""
    try:
        raw = parameter.codec.encode(parameter.default)
        back = parameter.codec.read(raw)
        same = type(back) is type(parameter.default) and bool(back == parameter.default)
    except Exception:  # noqa: BLE001  # comparing runs the user's code
        return None
    return msgspec.Raw(raw) if same else None


def _decoder_for(parameters: Iterable[Parameter]) -> Callable[[bytes], Any]:
    fields: list[Any] = []
    for parameter in parameters:
        kind = parameter.codec.type if parameter.codec.is_native else msgspec.Raw
        fields.append((parameter.name, kind) if parameter.required else (parameter.name, kind, _ABSENT))
    return native_decoder(msgspec.defstruct("Call", fields, forbid_unknown_fields=True, kw_only=True))


def _parameter(fn: Callable[..., object], found: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    name = found.name
    if found.kind in _UNNAMED:
        hint = _UNNAMED[found.kind].format(name=name)
        raise UsageError(f"{_function_name(fn)}({found}): recorded arguments need names.", hint=hint)
    codec = _codec(f"{_function_name(fn)}({name})", hints.get(name, _Kind.empty))
    return Parameter(name, found.default is _Kind.empty, codec.type, found.default, codec)


def _resource_parameters(
    fn: Callable[..., object], found: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> list[Injected]:
    """Return the parameters that are resources. Raises UsageError if an input could be mistaken for one of them."""
    resources = [each for each in found if each.default is injected]
    for each in resources:
        behind = [p.name for p in found[found.index(each) + 1 :] if p.kind is _Kind.POSITIONAL_OR_KEYWORD]
        inputs = [name for name in behind if name not in {p.name for p in resources}]
        if each.kind is _Kind.POSITIONAL_ONLY or (inputs and each.kind is _Kind.POSITIONAL_OR_KEYWORD):
            raise UsageError(
                f"{_function_name(fn)}({each.name}): a resource cannot stand before an input.",
                hint=f'Write it last, or behind a "*": {_function_name(fn)}(..., *, {each.name}=weft.injected).',
            )
    return [Injected(each.name, hints.get(each.name, Any)) for each in resources]


def injected_parameters(fn: Callable[..., object]) -> tuple[list[Injected], Any]:
    """Return the parameters of a function that takes only resources, and the type that it returns."""
    raw = _signature(fn)
    hints = _annotated_types(fn, raw)
    found = [each for each in raw.parameters.values() if each.kind not in (_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD)]
    needed = [
        Injected(each.name, hints.get(each.name, Any), each.default is _Kind.empty or each.default is injected)
        for each in found
    ]
    return needed, hints.get("return", Any)


def _codec(where: str, type_: Any) -> Codec[Any]:
    try:
        return Codec.of(type_)
    except BadValue as error:
        raise BadValue(f"{where}: {error.message}", hint=error.hint, code=error.code) from error.__cause__


def _signature(fn: Callable[..., object]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        # Annotations are evaluated lazily; a name that only type checkers know must not stop a program.
        return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(fn)


def _annotated_types(fn: Callable[..., object], raw: inspect.Signature) -> dict[str, Any]:
    """Return the annotations as types. An annotation that cannot be resolved becomes Any."""
    if inspect.isroutine(fn):
        with contextlib.suppress(Exception):  # evaluating annotations runs the user's code
            return typing.get_type_hints(fn, include_extras=True)
    written = {each.name: each.annotation for each in raw.parameters.values()} | {"return": raw.return_annotation}
    names = getattr(inspect.unwrap(fn), "__globals__", {})
    return {name: _resolved(annotation, names) for name, annotation in written.items() if annotation is not _Kind.empty}


def _resolved(annotation: Any, names: dict[str, Any]) -> Any:
    try:
        holder = SimpleNamespace(__annotations__={"it": annotation})
        return typing.get_type_hints(holder, names, include_extras=True)["it"]
    except Exception:  # noqa: BLE001  # evaluating annotations runs the user's code
        return Any


def _is_context(first: inspect.Parameter, hints: dict[str, Any], context_type: type | None) -> bool:
    if context_type is None:
        return False
    hint = hints.get(first.name)
    if first.name == "ctx" or (isinstance(hint, type) and issubclass(hint, context_type)):
        return True
    written = first.annotation  # a string if the type is imported only for type checkers
    return isinstance(written, str) and written.rpartition(".")[2] == context_type.__name__


def _with_default(parameter: Parameter) -> dict[str, Any]:
    schema = parameter.codec.schema()
    if parameter.required:
        return schema
    try:
        return {**schema, "default": decode(parameter.codec.encode(parameter.default))}
    except WeftError:  # JSON has no such value
        return schema


def _explain(misfit: Misfit, raw: bytes, what: str) -> str:
    top = re.split(r"[.\[]", misfit.path, maxsplit=1)[0]
    given = decode(raw).get(top, _ABSENT) if top else _ABSENT
    if given is _ABSENT:
        return f"{what}(): {misfit.clause()}."
    return f"{what}({top}={preview_text(given, chars_max=40)}): {misfit.clause()}."


def _guess(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    meant = f' Did you mean "{close[0]}"?' if close else ""
    return f"{meant} It takes: {', '.join(known) or 'nothing'}."


def _wrong(message: str, hint: str = _NOT_STARTED, at: Sequence[tuple[str, str]] = ()) -> BadValue:
    """Return the error of a refused input. ``at`` has what is wrong by path, so that a form shows it at its fields."""
    findings = [
        {"path": "".join(f"/{part}" for part in re.findall(r"[^.\[\]]+", path)), "message": said} for path, said in at
    ]
    return BadValue(message, hint=hint, code="value.wrong_type", findings=findings)


def _missing_arguments(names: Sequence[str], what: str, hint: str = _NOT_STARTED) -> BadValue:
    return _wrong(f"{what}() needs {', '.join(names)}.", hint, [(name, "This is needed.") for name in names])


def _unknown_argument(name: str, what: str, known: Iterable[str], hint: str = _NOT_STARTED) -> BadValue:
    message = f'{what}() has no parameter "{name[:60]}".{_guess(name, known)}'
    return _wrong(message, hint, [(name[:60], "There is no such field.")])


def _misfit(misfit: Misfit, raw: bytes, what: str, hint: str) -> BadValue:
    return _wrong(_explain(misfit, raw, what), hint, [(misfit.path, f"{misfit.clause()}.")])


def _function_name(fn: Callable[..., object]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
