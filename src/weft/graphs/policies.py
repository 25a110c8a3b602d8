"""How a node is tried, how long, where, and how it is taken back: `retry`, `timeout`, `limits`, `undo`."""

from __future__ import annotations

from weft.core.graph.folded import FoldedUndo, Source
from weft.core.graph.model import Backoff, Limits, Retry
from weft.graphs.fields import Fields

BACKOFFS: dict[str, Backoff] = {"fixed": "fixed", "linear": "linear", "exponential": "exponential"}
RETRY = ("attempts", "backoff", "delay", "max_delay", "max_attempts", "backoff_ms")
LIMITS = ("time", "hops", "tokens", "fan_out", "deadline_s", "max_hops", "max_fanout")
UNDO = ("step", "with", "retry", "timeout", "action", "timeout_sec")
ATTEMPTS_MAX = 10_000


def fold_retry(node: Fields) -> Retry:
    """`retry: 5`, or a mapping; silence leaves the step's own policy."""
    raw = node.raw.get("retry")
    if "retry" not in node:
        return Retry()
    if not isinstance(raw, dict):
        return Retry(attempts=_attempts(node, "retry"))
    retry = Fields(raw, node.place("retry"), node.problems, RETRY)
    delay_ms: int | None = None
    if retry.spelling("delay", "backoff_ms") == "backoff_ms":
        delay_ms = retry.whole("backoff_ms", least=0)
    elif "delay" in retry:
        delay_ms = retry.duration("delay")
    return Retry(
        attempts=_attempts(retry, retry.spelling("attempts", "max_attempts")),
        backoff=retry.choice("backoff", BACKOFFS, None),
        delay_ms=delay_ms,
        delay_ms_max=retry.duration("max_delay") if "max_delay" in retry else None,
    )


def _attempts(fields: Fields, key: str) -> int | None:
    attempts = fields.whole(key)
    if attempts is not None and attempts > ATTEMPTS_MAX:
        fields.wrong(key, f"at most {ATTEMPTS_MAX:,}")
        return None
    return attempts


def fold_limits(holder: Fields) -> Limits:
    """Bounds of the run (at the top of a document) or of a node."""
    if "limits" not in holder:
        return Limits()
    limits = Fields(holder.raw["limits"], holder.place("limits"), holder.problems, LIMITS)
    return Limits(
        time_ms=limits.duration(limits.spelling("time", "deadline_s")),
        hops=limits.whole(limits.spelling("hops", "max_hops")) or 0,
        tokens=limits.whole("tokens") or 0,
        fan_out=limits.whole(limits.spelling("fan_out", "max_fanout")) or 0,
    )


def fold_undo(node: Fields) -> FoldedUndo | None:
    """The step that takes the node back."""
    key = node.spelling("undo", "compensator")
    if key not in node:
        return None
    raw = node.raw[key]
    if isinstance(raw, str) and raw:
        return FoldedUndo(raw)
    undo = Fields(raw, node.place(key), node.problems, UNDO)
    step = undo.text(undo.spelling("step", "action"))
    if not step:
        if undo.raw and undo.spelling("step", "action") not in undo:
            undo.needed("step")
        return None
    given = undo.raw.get("with")
    return FoldedUndo(
        step,
        Source(given, undo.place("with")) if given is not None else None,
        fold_retry(undo),
        undo.duration(undo.spelling("timeout", "timeout_sec")),
    )
