"""The headers of HTTP steps, which name the run, the call, and the webhook for an answer that comes later. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from weft.errors import UsageError
from weft.steps.http.webhooks import Receipt, Webhooks
from weft.steps.task import STEP_TRACE, Task

_SAFE = "/:~[]#@!$&'()*+,;="


class Later(NamedTuple):
    """The webhook for an answer, and its key."""

    token: str
    url: str
    key: str


def task_headers(task: Task | None) -> dict[str, str]:
    """Return the headers of a task. The task's key is the same in every attempt, so that a receiver can act once."""
    if task is None:
        return {}
    trace = STEP_TRACE.get(None)
    return {
        **({} if trace is None else {"traceparent": str(trace.traceparent())}),
        "idempotency-key": _header_text(task.key),
        "weft-run": _header_text(task.run_id),
        "weft-step": _header_text(task.step),
        "weft-key": _header_text(task.key),
        "weft-attempt": str(task.attempt),
    }


def webhook_headers(later: Later | None) -> dict[str, str]:
    """Return the headers that tell the callee where to send its answer."""
    return {} if later is None else {"weft-webhook-url": later.url, "weft-webhook-key": later.key}


def webhook_for(task: Task | None, webhooks: Webhooks | None, *, by_url: bool = False, bare: bool = False) -> Later:
    """Return the webhook for this attempt. ``Receipt`` explains ``by_url`` and ``bare``.

    Raises:
        UsageError: this engine has no URL for webhooks.
    """
    if webhooks is None or task is None:
        raise UsageError(
            "`answer: later` needs an engine that can receive webhooks.",
            hint="Set WEFT_WEBHOOK_URL (the public URL of the engine) and WEFT_WEBHOOK_SECRET, and run `weft serve`.",
        )
    token = webhooks.token(Receipt(task.run_id, task.uid, task.number, task.step, task.attempt, by_url, bare))
    return Later(token, webhooks.url(token, with_key=by_url), webhooks.key(token))


def _header_text(text: str) -> str:
    """Return a text as a header value: ASCII, everything else percent-encoded."""
    return quote(text, safe=_SAFE)
