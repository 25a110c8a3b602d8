"""Read the arguments for the body of a task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Raw

from weft.core.effects import PerformTask

Load = Callable[[bytes], Awaitable[bytes]]


class RecordedTask(msgspec.Struct):
    """The recorded data about a task that its undo gets."""

    input: Raw
    result: Raw
    defaults: Raw = Raw(b"{}")


_recorded = msgspec.json.Decoder(RecordedTask).decode
_arguments = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


async def arguments_of(effect: PerformTask, load: Load) -> bytes:
    """Return the arguments as JSON. Those of an undo come from the input and result of the task that it undoes."""
    if effect.takes is None:
        return await load(bytes(effect.input))
    recorded = _recorded(effect.input)
    arguments = {**_arguments(recorded.defaults), **_arguments(await load(bytes(recorded.input)))}
    arguments["result"] = Raw(await load(bytes(recorded.result)))
    return _encode({name: arguments[name] for name in effect.takes if name in arguments})
