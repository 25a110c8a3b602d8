"""Calls of functions, and of keywords, objects, sequences and integers, which look up a part of a value."""

from __future__ import annotations

from typing import Any

from weft.scripts.ale.meter import FRAMES_MAX, AleFault, AleLimitReached, Meter
from weft.scripts.ale.values import AleList, Closure, Keyword, LazySequence, Procedure, describe_type


def call_value(meter: Meter, called: Any, arguments: list[Any]) -> Any:
    """Call a value with arguments.

    Raises:
        AleFault: the value cannot be called, or not with these arguments.
    """
    shape = type(called)
    if shape is Closure:
        return _call_closure(meter, called, arguments)
    if shape is Procedure:
        error = called.arity_error(len(arguments))
        if error:
            raise AleFault(error)
        meter.charge(1)
        return called.run(meter, *arguments)
    if not 1 <= len(arguments) <= 2:
        raise AleFault(f"{describe_type(called)} takes 1 argument, or 2 with a default, not {len(arguments)}")
    if shape is Keyword:
        return look_up(arguments[0], called, *arguments[1:])
    if shape is dict:
        return look_up(called, *arguments)
    if shape is list or shape is str or shape is AleList:
        return _part(meter, called, *arguments)
    if shape is int:
        return look_up(arguments[0], called, *arguments[1:])
    raise AleFault(f"{describe_type(called)} cannot be called")


def _call_closure(meter: Meter, closure: Closure, arguments: list[Any]) -> Any:
    function = closure.shape
    given, expected = len(arguments), function.parameters
    if function.rest:
        if given < expected - 1:
            raise AleFault(f"the function takes at least {expected - 1} arguments, not {given}")
        meter.take((given - expected + 1) * 8)
        arguments = [*arguments[: expected - 1], arguments[expected - 1 :]]
    elif given != expected:
        raise AleFault(f"the function takes {expected} argument{'s' * (expected != 1)}, not {given}")
    meter.left -= function.cost
    if meter.left < 0:
        meter.refill()
    meter.bytes_left -= 128
    if meter.bytes_left < 0:
        raise AleLimitReached("memory")
    meter.frames += function.height
    if meter.frames > FRAMES_MAX:
        raise AleLimitReached("depth")
    value = function.body([meter, closure.frame, *arguments, *([None] * function.slots)])
    meter.frames -= function.height
    return value


def _part(meter: Meter, whole: Any, start: Any, end: Any = None) -> Any:
    """Return the part of a vector, list or string from ``start`` to ``end``, or to its end."""
    size = len(whole)
    stop = size if end is None else end
    if type(start) is not int or type(stop) is not int:
        wrong = start if type(start) is not int else end
        raise AleFault(f"the position in a sequence must be an integer, not {describe_type(wrong)}")
    last = size - 1 if type(whole) is AleList else size
    if not 0 <= start <= last or not start <= stop <= size:
        part = f"from {start}" if end is None else f"from {start} to {end}"
        raise AleFault(f"a sequence of length {size} has no part {part}")
    meter.take((stop - start) * 8 + 64)
    values = whole[start:stop]
    return values if type(whole) is not AleList else AleList(values) or None


def look_up(collection: Any, key: Any, default: Any = None) -> Any:
    """Return a field of an object or an element of a sequence, or the default."""
    shape = type(collection)
    if shape is dict:
        if type(key) is not Keyword and type(key) is not str:
            raise AleFault(f"the key of an object must be a keyword or a string, not {describe_type(key)}")
        return collection.get(key, default)
    if type(key) is not int:
        if type(key) is Keyword:
            raise AleFault(f"`:{key}` needs an object, not {describe_type(collection)}")
        raise AleFault(f"the position in a sequence must be an integer, not {describe_type(key)}")
    if shape in (list, str, AleList, LazySequence):
        return collection[key] if 0 <= key < len(collection) else default
    if collection is None:
        return default
    raise AleFault(f"position {key} needs a sequence, not {describe_type(collection)}")
