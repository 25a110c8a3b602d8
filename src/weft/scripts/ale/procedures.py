"""The built-in functions of Ale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from weft.scripts.ale import numbers
from weft.scripts.ale.calls import call_value, look_up
from weft.scripts.ale.meter import AleFault, Meter
from weft.scripts.ale.numbers import integer
from weft.scripts.ale.values import (
    AleList,
    Closure,
    Keyword,
    LazySequence,
    Pair,
    Procedure,
    describe_type,
    equal_ale_values,
    make_list,
    to_text,
)

_ITEM: Final = 16  # bytes per element of a sequence
_NOTHING: Final = object()


def elements_of(meter: Meter, value: Any, name: str) -> Sequence[Any]:
    """Return the elements of a sequence, the characters of a string, or the pairs of an object. Null has none."""
    if type(value) in (list, AleList, LazySequence):
        elements: Sequence[Any] = value
        return elements
    if value is None:
        return []
    if type(value) is str:
        meter.take(len(value) * 64)
        return list(value)
    if type(value) is dict:
        meter.take(len(value) * 96)
        return [Pair((Keyword(key), item)) for key, item in value.items()]
    raise AleFault(f"`{name}` needs a sequence, not {describe_type(value)}")


def _new_vector(meter: Meter, values: Sequence[Any]) -> list[Any]:
    meter.take(len(values) * _ITEM + 64)
    return list(values)


def _new_lazy(meter: Meter, values: Sequence[Any]) -> LazySequence:
    meter.take(len(values) * _ITEM + 64)
    return LazySequence(values)


def _new_like(meter: Meter, value: Any, parts: Sequence[Any]) -> Any:
    """Make a sequence of the same type as ``value``."""
    meter.take(len(parts) * _ITEM + 64)
    if type(value) is LazySequence:
        return LazySequence(parts)
    return list(parts) if type(value) is list else make_list(parts)


# Text and equality


def _str(meter: Meter, *values: Any) -> str:
    parts = [to_text(meter, value) for value in values]
    meter.take(sum(map(len, parts)) * 4)
    return "".join(parts)


def _eq(meter: Meter, first: Any, *others: Any) -> bool:
    return all(equal_ale_values(meter, first, other) for other in others)


def _raise(meter: Meter, *values: Any) -> Any:
    raise AleFault(_str(meter, *values))


# Sequences


def _length(_meter: Meter, value: Any) -> int:
    if value is None:
        return 0
    if type(value) in (list, str, dict, AleList, LazySequence):
        return len(value)
    raise AleFault(f"`length` needs a sequence, not {describe_type(value)}")


def _first(meter: Meter, value: Any) -> Any:
    if type(value) is str:
        return value[:1] or None
    if type(value) is Pair:
        return value[0]
    return next(iter(elements_of(meter, value, "first")), None)


def _last(meter: Meter, value: Any) -> Any:
    elements = elements_of(meter, value, "last")
    return elements[-1] if elements else None


def _rest(meter: Meter, value: Any) -> Any:
    if type(value) is Pair:
        return value[1]
    if type(value) is str:
        meter.take(len(value) * 4)
        return value[1:]
    if type(value) is dict:
        raise AleFault("the rest of an object is not defined, because objects have no order; use `dissoc`")
    return _new_like(meter, value, elements_of(meter, value, "rest")[1:])


def _reverse(meter: Meter, value: Any) -> Any:
    if type(value) is str:
        meter.take(len(value) * 4)
        return value[::-1]
    if type(value) is dict:
        raise AleFault("`reverse` needs a sequence with an order, not an object")
    return _new_like(meter, value, elements_of(meter, value, "reverse")[::-1])


def _nth(meter: Meter, value: Any, index: Any, default: Any = _NOTHING) -> Any:
    elements, at = elements_of(meter, value, "nth"), integer(index, "nth")
    if 0 <= at < len(elements):
        return elements[at]
    if default is _NOTHING:
        raise AleFault(f"a sequence of length {len(elements)} has no element {at}")
    return default


def _take(meter: Meter, count: Any, value: Any) -> LazySequence:
    return _new_lazy(meter, elements_of(meter, value, "take")[: max(integer(count, "take"), 0)])


def _drop(meter: Meter, count: Any, value: Any) -> LazySequence:
    elements = elements_of(meter, value, "drop")
    meter.take(len(elements) * _ITEM)
    return LazySequence(elements[max(integer(count, "drop"), 0) :])


def _concat(meter: Meter, *values: Any) -> LazySequence:
    return LazySequence(_concatenate(meter, *values))


def _concatenate(meter: Meter, *values: Any) -> list[Any]:
    whole: list[Any] = []
    for value in values:
        elements = elements_of(meter, value, "concat")
        meter.take(len(elements) * _ITEM)
        whole.extend(elements)
    return whole


def _conj(meter: Meter, value: Any, *added: Any) -> Any:
    if type(value) in (dict, str):
        raise AleFault(
            f"`conj` cannot add to {describe_type(value)}; use `{'assoc' if type(value) is dict else 'str'}`"
        )
    elements = elements_of(meter, value, "conj")
    # A vector grows at its end. Other sequences grow at their front, one element after the other.
    return _new_like(meter, value, [*elements, *added] if type(value) is list else [*reversed(added), *elements])


def _cons(meter: Meter, added: Any, value: Any) -> Any:
    if value is not None and type(value) not in (list, AleList, LazySequence):
        return Pair((added, value))
    return _new_like(meter, value, [added, *elements_of(meter, value, "cons")])


def _range(meter: Meter, *bounds: Any) -> LazySequence:
    low, high, step = 0, 0, 1
    whole = [integer(bound, "range") for bound in bounds]
    if len(whole) == 1:
        high, step = whole[0], 1 if whole[0] > 0 else -1
    else:
        low, high = whole[:2]
    if len(whole) == 3:
        step = whole[2]
    if not step:
        raise AleFault("`range` needs a step other than 0")
    widest = max(low.bit_length(), high.bit_length()) // 8 + 48
    meter.take(max(0, (high - low) // step + 1) * widest)
    return LazySequence(range(low, high, step))


# Objects


def _ale_key(value: Any) -> str:
    if type(value) is Keyword or type(value) is str:
        return str(value)
    raise AleFault(f"the key of an object must be a keyword or a string, not {describe_type(value)}")


def make_object(meter: Meter, *parts: Any) -> dict[str, Any]:
    """Make an object from alternating keys and values."""
    if len(parts) % 2:
        raise AleFault("an object needs a value for every key")
    meter.take(len(parts) * 48 + 64)
    return {_ale_key(parts[index]): parts[index + 1] for index in range(0, len(parts), 2)}


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if type(value) is dict:
        return value
    raise AleFault(f"`{name}` needs an object, not {describe_type(value)}")


def _assoc(meter: Meter, value: Any, *parts: Any) -> dict[str, Any]:
    fields = _mapping(value, "assoc")
    meter.take(len(fields) * 96)
    if len(parts) == 1:
        if type(parts[0]) is not Pair:
            raise AleFault(f"`assoc` takes a key and a value, or a pair, not {describe_type(parts[0])}")
        parts = parts[0]
    return {**fields, **make_object(meter, *parts)}


def _dissoc(meter: Meter, value: Any, *keys: Any) -> dict[str, Any]:
    fields, removed = _mapping(value, "dissoc"), {_ale_key(key) for key in keys}
    meter.take(len(fields) * 96)
    return {key: item for key, item in fields.items() if key not in removed}


def _seq_to_object(meter: Meter, *values: Any) -> dict[str, Any]:
    return make_object(meter, *_concatenate(meter, *values))


def _ale_contains(_meter: Meter, value: Any, key: Any) -> bool:
    return look_up(value, key, _NOTHING) is not _NOTHING


# Functions that call functions. They loop in Python, because a callback from C code would not count towards the depth.


def _map(meter: Meter, function: Any, value: Any, *others: Any) -> LazySequence:
    results: list[Any] = []
    if not others:
        for item in elements_of(meter, value, "map"):
            results.append(call_value(meter, function, [item]))
            meter.take(_ITEM)
        return LazySequence(results)
    rows = zip(elements_of(meter, value, "map"), *(elements_of(meter, other, "map") for other in others), strict=False)
    for row in rows:
        results.append(call_value(meter, function, list(row)))
        meter.take(_ITEM)
    return LazySequence(results)


def _filter(meter: Meter, function: Any, value: Any) -> LazySequence:
    results: list[Any] = []
    for item in elements_of(meter, value, "filter"):
        if call_value(meter, function, [item]) is not False:
            results.append(item)
            meter.take(_ITEM)
    return LazySequence(results)


def _reduce(meter: Meter, function: Any, *rest: Any) -> Any:
    elements = iter(elements_of(meter, rest[-1], "reduce"))
    total = rest[0] if len(rest) == 2 else next(elements, _NOTHING)
    if total is _NOTHING:
        return call_value(meter, function, [])
    return _fold(meter, function, total, elements)


def _fold_left(meter: Meter, function: Any, start: Any, value: Any) -> Any:
    return _fold(meter, function, start, iter(elements_of(meter, value, "fold-left")))


def _fold(meter: Meter, function: Any, total: Any, rest: Iterator[Any]) -> Any:
    for item in rest:
        total = call_value(meter, function, [total, item])
    return total


def _apply(meter: Meter, function: Any, *rest: Any) -> Any:
    last = elements_of(meter, rest[-1], "apply")
    meter.take((len(last) + len(rest)) * _ITEM)
    return call_value(meter, function, [*rest[:-1], *last])


# Predicates. Each has a negation, whose name begins with ``!``.

_TYPE_PREDICATES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null?": lambda value: value is None,
    "string?": lambda value: type(value) is str,
    "str?": lambda value: type(value) is str,
    "boolean?": lambda value: type(value) is bool,
    "keyword?": lambda value: type(value) is Keyword,
    "vector?": lambda value: type(value) is list,
    "list?": lambda value: type(value) is AleList or value is None,
    "object?": lambda value: type(value) is dict,
    "function?": lambda value: type(value) in (Procedure, Closure),
    "number?": lambda value: describe_type(value) == "a number",
    "true?": lambda value: value is True,
    "false?": lambda value: value is False,
    "empty?": lambda value: value is None or (type(value) in (list, str, dict, LazySequence) and not value),
}


def _predicate(name: str, test: Callable[[Any], bool]) -> Procedure:
    return Procedure(name, lambda _meter, value: test(value), 1, 1)


def _negate(predicate: Procedure) -> Procedure:
    run = predicate.run
    least, most = predicate.arguments_min, predicate.arguments_max
    return Procedure(f"!{predicate.name}", lambda meter, *values: not run(meter, *values), least, most)


_SEQUENCES: Final = (
    Procedure("list", lambda meter, *values: make_list(_new_vector(meter, values)), 0, None),
    Procedure("vector", lambda meter, *values: _new_vector(meter, values), 0, None),
    Procedure("seq->vector", _concatenate, 0, None),
    Procedure("seq->list", lambda meter, *values: make_list(_concatenate(meter, *values)), 0, None),
    Procedure("seq->object", _seq_to_object, 0, None),
    Procedure("reverse", _reverse, 1, 1),
    Procedure("length", _length, 1, 1),
    Procedure("first", _first, 1, 1),
    Procedure("rest", _rest, 1, 1),
    Procedure("last", _last, 1, 1),
    Procedure("nth", _nth, 2, 3),
    Procedure("take", _take, 2, 2),
    Procedure("drop", _drop, 2, 2),
    Procedure("concat", _concat, 0, None),
    Procedure("conj", _conj, 1, None),
    Procedure("cons", _cons, 2, 2),
    Procedure("range", _range, 1, 3),
    Procedure("object", make_object, 0, None),
    Procedure("assoc", _assoc, 2, None),
    Procedure("dissoc", _dissoc, 2, None),
    Procedure("get", lambda _meter, value, key, default=None: look_up(value, key, default), 2, 3),
    Procedure("contains?", _ale_contains, 2, 2),
    Procedure("map", _map, 2, None),
    Procedure("filter", _filter, 2, 2),
    Procedure("reduce", _reduce, 2, 3),
    Procedure("fold-left", _fold_left, 3, 3),
    Procedure("apply", _apply, 2, None),
)

_GENERAL: Final = (
    Procedure("str", _str, 0, None),
    Procedure("not", lambda _meter, value: value is False, 1, 1),
    Procedure("raise", _raise, 0, None),
)
_PREDICATES: Final = (
    Procedure("eq", _eq, 1, None),
    *(_predicate(name, test) for name, test in _TYPE_PREDICATES.items()),
    *(procedure for procedure in numbers.PROCEDURES if procedure.name.endswith("?")),
    *(procedure for procedure in _SEQUENCES if procedure.name == "contains?"),
)

PROCEDURES: Final[Mapping[str, Procedure]] = {
    procedure.name: procedure
    for procedure in (*numbers.PROCEDURES, *_SEQUENCES, *_GENERAL, *_PREDICATES, *map(_negate, _PREDICATES))
}
