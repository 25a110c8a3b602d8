"""Stored records as the events of the seeds, for views. Pure.

A record is *the* event: it has the number, it is folded, and a fork or a resume names it. Some records say several
things that happen together; people read them one by one, under the number of the record with a number of the part,
which nothing takes as input. A value stands in the log once: where a record names the number of another that has it,
``result_of`` finds it; a value that is not found is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.values import seal, unseal

ViewEvent = e.AnyEvent | e.AttributeSet
"""An event as views have it."""
ResultOf = Callable[[int], Raw | None]
"""Finds the result that the record of this number has."""

_parts: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_replace = msgspec.structs.replace


def unfold(record: e.AnyEvent, result_of: ResultOf = lambda _: None) -> Sequence[ViewEvent]:
    """The events that a record stands for, in order."""
    if isinstance(record, e.NodeRouted | e.StepStarted):
        return (record,) if record.task is None else (_replace(record, task=None), record.task)
    return _completed(record, result_of) if isinstance(record, e.StepCompleted) else (record,)


def _completed(record: e.StepCompleted, result_of: ResultOf) -> Sequence[ViewEvent]:
    result = result_of(record.of) if record.of else None
    outputs = dict(record.outputs) if record.takes and result is None else given_outputs(record, result or e.NULL)
    facts = [fact for fact in (*record.takes, *record.outputs) if fact not in record.unread]
    told = [
        e.AttributeSet(
            name=fact,
            value=outputs.get(fact, e.ABSENT),
            provider=record.step,
            matched=record.matched.get(fact, []),
            broken=record.broken.get(fact, {}),
        )
        for fact in facts
    ]
    return (*told, e.StepCompleted(step=record.step, outputs=outputs, takes={} if outputs else record.takes))


def given_outputs(record: e.StepCompleted, result: Raw) -> dict[str, Raw]:
    """What a step gives, by fact, out of the result that its record names."""
    if not record.takes:
        return record.outputs
    stored = bytes(result)
    parts: dict[str, Raw] | None = None
    found: dict[str, Raw] = {}
    for fact, key in record.takes.items():
        if not key:
            found[fact] = result
            continue
        if parts is None:
            parts = _parts.decode(unseal(stored))
        found[fact] = Raw(seal(bytes(parts[key])))
    return found
