"""What a model is told about a tool call: its result, or why there is none."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.agents.toolbox.calls import split_result
from weft.authoring.agents.operations import StoredResult, recorded_value
from weft.errors import Failure

PREVIEW_CHARS = 1_000
MESSAGE_CHARS_MAX = 2_000

_encode = msgspec.json.Encoder().encode


class CallOutcome(msgspec.Struct, frozen=True):
    """How one tool call of a turn ended."""

    content: str
    """JSON, for the model."""
    is_misfit: bool = False
    """The call was not possible as the model made it, so nothing was performed."""
    is_performed: bool = False
    ref: str = ""
    """The reference to the result, if it is kept."""
    is_untrusted: bool = False
    """The result has words of strangers."""
    is_child: bool = False
    """A child run was started for it."""


def error_outcome(error: Any, *, is_misfit: bool = False, **more: Any) -> CallOutcome:
    """Tell the model why there is no result."""
    return CallOutcome(_encode({"error": error, **more}).decode(), is_misfit)


def failed(failure: Failure) -> CallOutcome:
    """Tell the model how a tool failed."""
    return CallOutcome(_encode({"error": failure_for_model(failure)}).decode(), is_performed=True)


def failure_for_model(failure: Failure) -> dict[str, str]:
    """Return a failure as a model sees it: without tracebacks, and of bounded length."""
    shown = {"type": failure.type, "message": failure.message[:MESSAGE_CHARS_MAX]}
    return {**shown, "code": failure.code} if failure.code else shown


async def result_for_model(result: StoredResult, bytes_max: int, note: dict[str, Any] | None = None) -> CallOutcome:
    """Tell the model a result. A large one is told by reference, with its beginning.

    ``note`` is what the model must know beside it.
    """
    raw, ref = split_result(result.raw)
    if len(raw) > bytes_max:
        digest = result.digest or (await recorded_value("result", "result", raw)).digest
        preview = raw[: PREVIEW_CHARS * 4].decode(errors="ignore")[:PREVIEW_CHARS]
        ref = ref or f"cas://sha256:{digest}"
        shown = {"result_ref": ref, "bytes": len(raw), "preview": preview}
        raw = _encode(shown)
    if note:
        raw = _encode({"result": msgspec.Raw(raw), **note})
    return CallOutcome(raw.decode(), is_performed=True, ref=ref)
