"""The arguments of a task, as its body is given them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Raw

from weft.core.effects import PerformTask

Load = Callable[[bytes], Awaitable[bytes]]


class RecordedTask(msgspec.Struct):
    """What an undo is given of its task."""

    input: Raw
    result: Raw
    defaults: Raw = Raw(b"{}")


_recorded = msgspec.json.Decoder(RecordedTask).decode
_arguments = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


async def arguments_of(effect: PerformTask, load: Load) -> bytes:
    """Return the arguments as JSON; those of an undo are picked from what its task was given and gave."""
    if effect.takes is None:
        return await load(bytes(effect.input))
    recorded = _recorded(effect.input)
    arguments = {**_arguments(recorded.defaults), **_arguments(await load(bytes(recorded.input)))}
    arguments["result"] = Raw(await load(bytes(recorded.result)))
    return _encode({name: arguments[name] for name in effect.takes if name in arguments})
