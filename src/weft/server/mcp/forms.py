"""Questions of runs as forms that an MCP client shows to a person, and what the person answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from mcp_types import ElicitRequestFormParams, ElicitResult

from weft.observe.questions import OpenQuestion
from weft.server import views
from weft.server.endpoints.forms import flat_fields
from weft.server.request import ApiCall

APPROVED, REASON = "approved", "reason"
PLAIN_TYPES = ("string", "integer", "number", "boolean")
ABOUT_CHARS_MAX = 4_000
_KEPT = ("type", "title", "description", "enum", "minimum", "maximum", "minLength", "maxLength", "format", "default")


def form_fields(item: OpenQuestion) -> dict[str, Any] | None:
    """Return the fields of a question's form for an MCP client; None if such a client cannot show the form."""
    if item.question.form is None:
        return {}
    fields = flat_fields(item.question.form)
    if fields is None or {APPROVED, REASON} & set(fields):
        return None
    if any(field.get("type") not in PLAIN_TYPES for field in fields.values()):
        return None
    return {name: {key: field[key] for key in _KEPT if key in field} for name, field in fields.items()}


async def question_form(call: ApiCall, item: OpenQuestion, problem: str = "") -> ElicitRequestFormParams:
    """Return a question as a form. ``problem`` says what was wrong with the answer before."""
    question = item.question
    about = (await call.service.values.load(bytes(question.about))).decode()
    lines = [question.title, f"Run {item.row.id} ({item.row.workflow}) asks at {item.place}."]
    if about not in ("null", ""):
        shown = about if len(about) <= ABOUT_CHARS_MAX else f"{about[:ABOUT_CHARS_MAX]}…"
        lines.append(f"About: {shown}")
    if problem:
        lines.append(f"The answer was not accepted: {problem}")
    properties = {
        APPROVED: {"type": "boolean", "title": "Approve"},
        **(form_fields(item) or {}),
        REASON: {"type": "string", "title": "Reason", "maxLength": 10_000},
    }
    schema = {"type": "object", "properties": properties, "required": [APPROVED]}
    return ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema)


def read_elicited_decision(answer: ElicitResult, item: OpenQuestion, by: str, digest: str) -> views.Decision | None:
    """Return what a person decided; None if the person decided nothing."""
    content: Mapping[str, Any] = answer.content or {}
    approved = content.get(APPROVED)
    if answer.action != "accept" or not isinstance(approved, bool):
        return None
    names = form_fields(item) or {}
    filled = {name: value for name, value in content.items() if name in names and value is not None}
    return msgspec.convert(
        {
            "approved": approved,
            "reason": str(content.get(REASON) or ""),
            "form": filled if item.question.form is not None and approved else None,
            "by": by,
            "digest": digest,
        },
        views.Decision,
    )
