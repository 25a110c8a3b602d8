"""The worker process of pipelines. It performs segments until its input ends, and may be killed at any time."""

from __future__ import annotations

import gc
from typing import Any, Final

import msgspec

from weft.killable import serve_calls
from weft.pipelines.faults import PipelineFailed, StepFault
from weft.pipelines.limits import MEMORY_BYTES_MAX, TIME_S_MAX
from weft.pipelines.perform import perform_steps
from weft.pipelines.pipeline import read_steps

_ALARM_S: Final = TIME_S_MAX + 5.0


class SegmentCall(msgspec.Struct, array_like=True):
    """Steps as they were written, the index of the first of them, the data, and the stored data that they read."""

    first: int
    steps: list[Any]
    data: bytes
    stored: dict[str, bytes]


class SegmentReply(msgspec.Struct, array_like=True):
    """The result, or what went wrong: a code, which is then not empty."""

    data: bytes = b""
    code: str = ""
    message: str = ""
    hint: str = ""
    index: int | None = None


def serve() -> None:
    """Perform segments until the input ends."""
    gc.disable()  # data has no cycles, and looking for them takes longer than the steps
    limit_memory(MEMORY_BYTES_MAX)
    serve_calls(run_call, alarm_s=_ALARM_S)


def run_call(frame: bytes) -> bytes:
    """Perform one call."""
    call = msgspec.msgpack.decode(frame, type=SegmentCall)
    try:
        steps = read_steps(call.first, call.steps)
        reply = SegmentReply(perform_steps(steps, call.data, call.stored))
    except PipelineFailed as error:
        reply = _segment_refusal(error)
    except MemoryError:
        reply = _segment_refusal(
            StepFault("too_large", "too much memory is needed.").at(call.first, call.steps[0]["step"])
        )
    return msgspec.msgpack.encode(reply)


def _segment_refusal(error: PipelineFailed) -> SegmentReply:
    return SegmentReply(code=error.code, message=error.message, hint=error.hint, index=error.index)


def limit_memory(size: int) -> None:
    """Let this process take only so much more memory than it has now. Where the system has no limits, do nothing."""
    try:
        import resource  # noqa: PLC0415 - not on Windows

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file on disk
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + size, used + size))
    except (ImportError, OSError, ValueError):
        return
