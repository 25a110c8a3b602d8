"""Perform the steps of a pipeline in a worker process that is killed at its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from weft.extras import require
from weft.killable import WorkerDied, WorkerKilled, WorkerPool
from weft.pipelines.faults import PipelineFailed, StepFault
from weft.pipelines.limits import MEMORY_BYTES_MAX
from weft.pipelines.pipeline import PlacedStep
from weft.pipelines.worker import SegmentCall, SegmentReply

WORKERS_MAX: Final = 2
POOL: Final = WorkerPool("weft.pipelines.worker", "serve", size=WORKERS_MAX)


def perform_killable(
    steps: Sequence[PlacedStep], source: Sequence[object], data: bytes, stored: Mapping[str, bytes], seconds: float
) -> bytes:
    """Perform steps in a worker process. ``source`` is the whole pipeline as it was written.

    Raises PipelineFailed, and MissingExtra if a step needs a package that is not installed.
    """
    first, last = steps[0], steps[-1]
    if any(placed.step.needs_process for placed in steps):
        require("tables", next(placed.name for placed in steps if placed.step.needs_process))
    call = SegmentCall(first.index, list(source[first.index : last.index + 1]), data, dict(stored))
    try:
        reply = msgspec.msgpack.decode(POOL.call(msgspec.msgpack.encode(call), seconds), type=SegmentReply)
    except WorkerKilled:
        raise StepFault(
            "timeout", f"the steps from here on took longer than {seconds:g} s.", "Use less data, or a simpler step."
        ).at(first.index, first.name) from None
    except WorkerDied as error:
        raise StepFault(
            "too_large",
            f"{error}, most likely because the steps from here on need more than {MEMORY_BYTES_MAX >> 20} MiB.",
            "Use less data, or a simpler step.",
        ).at(first.index, first.name) from None
    if reply.code:
        raise PipelineFailed(reply.message, index=reply.index, hint=reply.hint, code=reply.code)
    return reply.data
