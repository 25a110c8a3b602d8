"""What the answer of a provider means if it is not a reply: another attempt, another model, or the end.

A provider may repeat the key that it was sent, so its words are shown without secrets.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from weft.agents.models.failures import CONTEXT, REJECTED, UNAVAILABLE, ModelFailed
from weft.steps.http.exchange import HttpResponse
from weft.steps.http.outcome import one_line, retry_after_ms
from weft.steps.secrets import replace_secrets

_TRANSIENT = frozenset({408, 409, 425, 429})
_QUOTA_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded", "exceeded_quota",
    "insufficient_credits", "insufficient_balance", "credit_balance_too_low", "account_deactivated",
})  # fmt: skip
_CONTEXT_CODES = frozenset({
    "context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "context_window_exceeded",
    "model_context_window_exceeded", "prompt_too_long", "request_too_large",
})  # fmt: skip
_CONTEXT_WORDS = re.compile(
    r"maximum context length|context (length|window|size)|exceeds? the (available )?context|prompt is too long"
    r"|too many (input )?tokens|input is too long",
    re.IGNORECASE,
)
_TRANSIENT_CODES = frozenset({
    "server_error", "internal_error", "internal_server_error", "overloaded", "overloaded_error", "rate_limit_exceeded",
    "rate_limit_error", "api_error", "timeout", "service_unavailable", "unavailable",
})  # fmt: skip
_HINTS = {
    401: "Check the key of the model.",
    403: "Check what the key of the model may do.",
    404: "Check the url and the name of the model: weft models ping",
}


def failed_answer(alias: str, answer: HttpResponse, *, now_ms: int) -> ModelFailed:
    """Return the failure that an unsuccessful response means."""
    codes, detail = _error_codes_and_text(_decoded(answer.body))
    reason = f" {answer.reason}" if answer.reason else ""
    text = f"The model {alias} answered {answer.status}{reason}{f': {detail}' if detail else ''}."
    status = answer.status
    if status == 413 or (400 <= status < 500 and _is_context(codes, detail)):
        return ModelFailed(text, status=status, code=CONTEXT)
    if status in (402, 403, 429) and codes & _QUOTA_CODES:
        return ModelFailed(text, status=status, code=UNAVAILABLE, hint="Its quota is used up: pay, or wait.")
    if status in _TRANSIENT or status >= 500:
        return ModelFailed(
            text,
            status=status,
            is_transient=True,
            retry_after_ms=retry_after_ms(answer, now_ms=now_ms),
            in_doubt=status in (408, 500, 502, 504),
        )
    return ModelFailed(text, status=status, code=REJECTED, hint=_HINTS.get(status, ""))


def failed_event(alias: str, error: Any) -> ModelFailed:
    """Return the failure that an error inside an answer means."""
    codes, detail = _error_codes_and_text({"error": error})
    text = f"The model {alias} broke off with an error{f': {detail}' if detail else ''}."
    if _is_context(codes, detail):
        return ModelFailed(text, code=CONTEXT)
    if codes & _QUOTA_CODES:
        return ModelFailed(text, code=UNAVAILABLE, hint="Its quota is used up: pay, or wait.")
    number = error.get("code") if isinstance(error, dict) else None
    if isinstance(number, int) and 400 <= number < 500 and number not in _TRANSIENT:
        return ModelFailed(text, code=REJECTED, status=number)
    if codes & {"invalid_request_error", "invalid_prompt"} and not codes & _TRANSIENT_CODES:
        return ModelFailed(text, code=REJECTED)
    return ModelFailed(text, is_transient=True, in_doubt=True)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return one_line(body.decode("utf-8", "replace"))


def _error_codes_and_text(found: Any) -> tuple[frozenset[str], str]:
    """Return the codes of an error and its text, whatever form the provider chose."""
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        return frozenset(), replace_secrets(one_line(found)) if isinstance(found, str) else ""
    error = found.get("error", found)
    if not isinstance(error, dict):
        return frozenset(), replace_secrets(one_line(error)) if isinstance(error, str) else ""
    named = (error.get(name) for name in ("code", "type", "status"))
    codes = frozenset(code.lower() for code in named if isinstance(code, str))
    texts = (error.get(name) for name in ("message", "detail", "title"))
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return codes, replace_secrets(one_line(text)) or ", ".join(sorted(codes))[:200]


def _is_context(codes: frozenset[str], detail: str) -> bool:
    return bool(codes & _CONTEXT_CODES) or _CONTEXT_WORDS.search(detail) is not None
