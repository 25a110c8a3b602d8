"""Perform the steps of a pipeline on data as JSON. Bytes in, bytes out; the same here and in a worker process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.core import values
from weft.errors import LimitExceeded, WeftError
from weft.pipelines.faults import StepFault
from weft.pipelines.limits import DATA_BYTES_MAX, HERE_BYTES_MAX, ROWS_MAX
from weft.pipelines.pipeline import PlacedStep

_encode = msgspec.json.Encoder().encode


def needs_process(steps: Sequence[PlacedStep], data: bytes, stored: Mapping[str, bytes]) -> bool:
    """Return whether steps are performed in a process that can be killed: with jq or regex, and for large data."""
    size = len(data) + sum(map(len, stored.values()))
    return size > HERE_BYTES_MAX or any(placed.step.needs_process for placed in steps)


def perform_steps(steps: Sequence[PlacedStep], data: bytes, stored: Mapping[str, bytes]) -> bytes:
    """Perform steps one after the other; there is at least one. Raises PipelineFailed."""
    value: Any = msgspec.json.decode(data)
    known = {reference: msgspec.json.decode(raw) for reference, raw in stored.items()}
    for placed in steps:
        try:
            value = placed.step.apply(value, known)
            if placed.step.grows:
                _check_size(value)
        except StepFault as fault:
            raise fault.at(placed.index, placed.name) from None
        except RecursionError:
            raise StepFault("too_large", "the data is nested too deeply.").at(placed.index, placed.name) from None
    return _stored(steps[-1], value)


def _check_size(value: Any) -> None:
    """Raise StepFault if data is too large."""
    if type(value) is list and len(value) > ROWS_MAX:
        raise StepFault("too_large", f"the result has {len(value):,} rows; the limit is {ROWS_MAX:,}.")
    try:
        raw = _encode(value)
    except OverflowError:
        raise StepFault("bad_value", "the result has an integer beyond 64 bits.") from None
    if len(raw) > DATA_BYTES_MAX:
        raise StepFault(
            "too_large",
            f"the result has {len(raw):,} bytes; the limit is {DATA_BYTES_MAX:,}.",
            "Filter rows or select fields first.",
        )


def _stored(last: PlacedStep, value: Any) -> bytes:
    """Return the result as a value that every store keeps unchanged. Raises PipelineFailed."""
    try:
        return values.encode(value, what="it gives")
    except LimitExceeded as error:
        raise StepFault("too_large", error.message, error.hint).at(last.index, last.name) from None
    except WeftError as error:
        raise StepFault("bad_value", error.message, error.hint).at(last.index, last.name) from None
