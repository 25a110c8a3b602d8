"""What every HTTP step sends along: who asks, for which call, and where an answer that comes later goes. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from weft.errors import UsageError
from weft.steps.base import CURRENT_TASK, Task
from weft.steps.http.webhooks import Receipt, Webhooks

_SAFE = "/:~[]#@!$&'()*+,;="


class Later(NamedTuple):
    """Where the answer goes, and the key that proves it."""

    token: str
    url: str
    key: str


def current_task() -> Task | None:
    """The task that is being performed, None where a body is called by hand."""
    return CURRENT_TASK.get(None)


def task_headers(task: Task | None) -> dict[str, str]:
    """The key is the same in every attempt: a receiver that honours it acts once."""
    if task is None:
        return {}
    return {
        "idempotency-key": _header_text(task.key),
        "weft-run": _header_text(task.run_id),
        "weft-step": _header_text(task.step),
        "weft-key": _header_text(task.key),
        "weft-attempt": str(task.attempt),
    }


def webhook_headers(later: Later | None) -> dict[str, str]:
    """Where to answer, for who reads headers."""
    return {} if later is None else {"weft-webhook-url": later.url, "weft-webhook-key": later.key}


def later_for(task: Task | None, webhooks: Webhooks | None, *, by_url: bool = False, bare: bool = False) -> Later:
    """The webhook for this very attempt. ``by_url``: its address has the key; ``bare``: see `Receipt`.

    Raises:
        UsageError: this engine has no address at which it could be answered.
    """
    if webhooks is None or task is None:
        raise UsageError(
            "answer: later needs an engine that can be answered.",
            hint="Set WEFT_WEBHOOK_URL (where others reach it) and WEFT_WEBHOOK_SECRET, and run `weft serve`.",
        )
    token = webhooks.token(Receipt(task.run_id, task.uid, task.number, task.step, task.attempt, by_url, bare))
    return Later(token, webhooks.url(token, with_key=by_url), webhooks.key(token))


def _header_text(text: str) -> str:
    """Header values are ASCII; what is not is percent-encoded."""
    return quote(text, safe=_SAFE)
