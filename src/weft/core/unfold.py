"""Split stored records into the events that views show. Pure.

The record is the real event: it has the sequence number, it changes the state, and forks and retries refer to it. Some
records combine several things that happen together. Views show these one by one, numbered by record and part; no
command accepts the number of a part. The log stores a value once. If a record refers to a value in another record,
``result_of`` looks it up. A value that is not found is left out.
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
"""Finds the result in the record with this number."""

_parts: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_replace = msgspec.structs.replace


def unfold(record: e.AnyEvent, result_of: ResultOf = lambda _: None) -> Sequence[ViewEvent]:
    """Return the events that a record combines, in order."""
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
    """Return the outputs of a step, by fact, read from the result that its record refers to."""
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
