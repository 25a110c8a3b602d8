"""The options of questions: how many people must approve, and what happens when nobody answers."""

from __future__ import annotations

from typing import Literal, TypedDict

from weft.core.run.questions import is_group
from weft.errors import BadValue

ON_TIMEOUT = ("fail", "approve", "reject")


class Escalation(TypedDict):
    """Who is asked next when nobody answers in time: ``{"escalate": "role:boss"}``."""

    escalate: str | list[str]


OnTimeout = Literal["fail", "approve", "reject"] | Escalation


def read_on_timeout(given: OnTimeout) -> tuple[str, list[str]]:
    """Return what happens when nobody answers in time, and who is asked next."""
    if isinstance(given, dict) and set(given) == {"escalate"} and given["escalate"]:
        who = given["escalate"]
        return "escalate", [who] if isinstance(who, str) else list(who)
    if given not in ON_TIMEOUT:
        choices = ", ".join(ON_TIMEOUT)
        raise BadValue(f'on_timeout={given!r} is not one of {choices}, {{"escalate": who}}.', code="value.bad_policy")
    return str(given), []


def check_quorum(quorum: str | int, asked: list[str]) -> None:
    """Refuse a quorum that cannot be reached. Raises BadValue.

    If a group or nobody is named, the number of people is not known, and every positive quorum is accepted.
    """
    open_ended = not asked or any(is_group(who) for who in asked)
    if isinstance(quorum, int):
        reachable = quorum >= 1 and (open_ended or quorum <= len(asked))
    else:
        reachable = quorum in ("any", "all")
    if isinstance(quorum, bool) or not reachable:
        raise BadValue(
            f"quorum={quorum!r} cannot be reached by {len(asked)} people.",
            hint='Write "any", "all", or how many of the people named in `of` must approve.',
            code="value.bad_policy",
        )
