"""Read questions from graph and step documents: who is asked, how many must approve, and until when."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.run.questions import is_group
from weft.documents.fields import Fields
from weft.documents.schema_words import object_schema

QUESTION = ("title", "form", "of", "quorum", "on_timeout", "four_eyes", "remind")


class QuestionFields(msgspec.Struct, frozen=True):
    """The fields of ``ask`` that both kinds of documents have."""

    title: str
    form: dict[str, Any] | None
    of: list[str]
    quorum: str | int
    on_timeout: Any
    escalate: list[str]
    four_eyes: bool
    remind_ms: int


def read_question(ask: Fields, default_title: str) -> QuestionFields:
    """Read the fields of ``ask``."""
    form = object_schema(ask.raw["form"], ask.place("form"), ask.problems, required=True) if "form" in ask else None
    on_timeout, escalate = _on_timeout(ask)
    return QuestionFields(
        title=ask.text("title") or default_title,
        form=form,
        of=ask.texts("of"),
        quorum=_read_quorum(ask),
        on_timeout=on_timeout,
        escalate=escalate,
        four_eyes=ask.flag("four_eyes", default=False),
        remind_ms=ask.duration("remind"),
    )


def _read_quorum(ask: Fields) -> str | int:
    """Read how many people must approve. More than the people asked is an error, unless a group is asked."""
    if not isinstance(ask.raw.get("quorum"), int):
        return ask.choice("quorum", {"any": "any", "all": "all"}, "any")
    quorum, people = ask.integer("quorum") or 1, ask.texts("of")
    if people and quorum > len(people) and not any(is_group(who) for who in people):
        ask.wrong("quorum", f"at most {len(people)}, the number of people asked")
    return quorum


def _on_timeout(ask: Fields) -> tuple[Any, list[str]]:
    """Read what happens after the timeout, and who is asked next."""
    raw = ask.raw.get("on_timeout")
    if isinstance(raw, dict):
        escalation = Fields(raw, ask.place("on_timeout"), ask.problems, ("escalate",))
        if not escalation.texts("escalate"):
            escalation.needed("escalate")
        return "escalate", escalation.texts("escalate")
    return ask.choice("on_timeout", {word: word for word in ("fail", "approve", "reject")}, "fail"), []
