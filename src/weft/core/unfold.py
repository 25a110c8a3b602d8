"""Split stored records into the events that views show. Pure.

A record is an event as the log stores it. It has a sequence number and changes the state; forks and retries refer to
it. Some records combine several events that happen together. Views show these one by one, numbered by record and part.
No command accepts the number of a part. The log stores each value once. If a record refers to a value in another
record, ``result_of`` looks it up; if there is none, the value is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from weft.core import events as e
from weft.core.values import seal, unseal

ViewEvent = e.AnyEvent | e.AttributeSet
"""An event as views show it."""
ResultOf = Callable[[int], Raw | None]
"""Returns the result that the record with this number contains, or None."""

COMBINED: frozenset[type] = frozenset({e.NodeRouted, e.StepStarted, e.StepCompleted})
"""The records that may combine several events. All others are events themselves."""

_fields: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_replace = msgspec.structs.replace


def unfold(record: e.AnyEvent, result_of: ResultOf = lambda _: None) -> Sequence[ViewEvent]:
    """Return the events that a record combines, in order."""
    if isinstance(record, e.NodeRouted | e.StepStarted):
        return (record,) if record.task is None else (_replace(record, task=None), record.task)
    return _unfold_completed(record, result_of) if isinstance(record, e.StepCompleted) else (record,)


def _unfold_completed(record: e.StepCompleted, result_of: ResultOf) -> Sequence[ViewEvent]:
    result = result_of(record.of) if record.of else None
    outputs = dict(record.outputs) if record.takes and result is None else step_outputs(record, result or e.NULL)
    facts = [fact for fact in (*record.takes, *record.outputs) if fact not in record.unread]
    attributes = [
        e.AttributeSet(
            name=fact,
            value=outputs.get(fact, e.ABSENT),
            provider=record.step,
            matched=record.matched.get(fact, []),
            broken=record.broken.get(fact, {}),
        )
        for fact in facts
    ]
    return (*attributes, e.StepCompleted(step=record.step, outputs=outputs, takes={} if outputs else record.takes))


def step_outputs(record: e.StepCompleted, result: Raw) -> dict[str, Raw]:
    """Return the outputs of a step by fact: those in its record, or else those selected from ``result``."""
    if not record.takes:
        return record.outputs
    stored = bytes(result)
    fields: dict[str, Raw] | None = None
    outputs: dict[str, Raw] = {}
    for fact, key in record.takes.items():
        if not key:
            outputs[fact] = result
            continue
        if fields is None:
            fields = _fields.decode(unseal(stored))
        outputs[fact] = Raw(seal(bytes(fields[key])))
    return outputs
