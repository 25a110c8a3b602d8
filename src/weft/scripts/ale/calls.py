"""Calls: of functions, and of keywords, objects, vectors and integers, which look something up."""

from __future__ import annotations

from typing import Any

from weft.scripts.ale.meter import FRAMES_MAX, AleFault, AleLimitReached, Meter
from weft.scripts.ale.values import Closure, Keyword, Lazy, Listed, Procedure, kind


def apply(meter: Meter, called: Any, arguments: list[Any]) -> Any:
    """Call anything that can be called."""
    shape = type(called)
    if shape is Closure:
        return _enter(meter, called, arguments)
    if shape is Procedure:
        misfit = called.misfit(len(arguments))
        if misfit:
            raise AleFault(misfit)
        meter.charge(1)
        return called.run(meter, *arguments)
    if not 1 <= len(arguments) <= 2:
        raise AleFault(f"{kind(called)} is called with {len(arguments)} arguments; it takes 1, or 2 with a default")
    if shape is Keyword:
        return look_up(arguments[0], called, *arguments[1:])
    if shape is dict:
        return look_up(called, *arguments)
    if shape is list or shape is str or shape is Listed:
        return _part(meter, called, *arguments)
    if shape is int:
        return look_up(arguments[0], called, *arguments[1:])
    raise AleFault(f"{kind(called)} cannot be called")


def _enter(meter: Meter, closure: Closure, arguments: list[Any]) -> Any:
    function = closure.shape
    given, wanted = len(arguments), function.parameters
    if function.rest:
        if given < wanted - 1:
            raise AleFault(f"the function takes at least {wanted - 1} arguments, not {given}")
        meter.take((given - wanted + 1) * 8)
        arguments = [*arguments[: wanted - 1], arguments[wanted - 1 :]]
    elif given != wanted:
        raise AleFault(f"the function takes {wanted} argument{'s' * (wanted != 1)}, not {given}")
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
    """Return the part of a vector, list or string from one position on, or up to another."""
    size = len(whole)
    stop = size if end is None else end
    if type(start) is not int or type(stop) is not int:
        raise AleFault(
            f"the position in a sequence is an integer, not {kind(start if type(start) is not int else end)}"
        )
    last = size - 1 if type(whole) is Listed else size
    if not 0 <= start <= last or not start <= stop <= size:
        shown = f"{start}" if end is None else f"{start} to {end}"
        raise AleFault(f"there is no part {shown} in a sequence of {size}")
    meter.take((stop - start) * 8 + 64)
    part = whole[start:stop]
    return part if type(whole) is not Listed else Listed(part) or None


def look_up(collection: Any, key: Any, default: Any = None) -> Any:
    """Return a field of an object or an element of a sequence, or the default."""
    shape = type(collection)
    if shape is dict:
        if type(key) is not Keyword and type(key) is not str:
            raise AleFault(f"the key of an object is a keyword or a string, not {kind(key)}")
        return collection.get(key, default)
    if type(key) is not int:
        if type(key) is Keyword:
            raise AleFault(f"`:{key}` needs an object, not {kind(collection)}")
        raise AleFault(f"the position in a sequence is an integer, not {kind(key)}")
    if shape in (list, str, Listed, Lazy):
        return collection[key] if 0 <= key < len(collection) else default
    if collection is None:
        return default
    raise AleFault(f"position {key} needs a sequence, not {kind(collection)}")
