"""Options of questions: how many must approve, and what happens when nobody answers."""

from __future__ import annotations

from typing import Literal, TypedDict

from weft.core.run.questions import is_group
from weft.errors import BadValue

ON_TIMEOUT = ("fail", "approve", "reject")


class Escalation(TypedDict):
    """Who is asked when nobody answered in time: ``{"escalate": "role:boss"}``."""

    escalate: str | list[str]


OnTimeout = Literal["fail", "approve", "reject"] | Escalation


def read_on_timeout(given: OnTimeout) -> tuple[str, list[str]]:
    """Return what happens when nobody answers, and who is asked then."""
    if isinstance(given, dict) and set(given) == {"escalate"} and given["escalate"]:
        who = given["escalate"]
        return "escalate", [who] if isinstance(who, str) else list(who)
    if given not in ON_TIMEOUT:
        words = ", ".join(ON_TIMEOUT)
        raise BadValue(f'on_timeout={given!r} is not one of {words}, {{"escalate": who}}.', code="value.bad_policy")
    return str(given), []


def check_quorum(quorum: str | int, asked: list[str]) -> None:
    """Refuse what nobody could reach. How many people a group has is not known; without names anybody may be one."""
    unknown = not asked or any(is_group(who) for who in asked)
    enough = quorum >= 1 and (unknown or quorum <= len(asked)) if isinstance(quorum, int) else quorum in ("any", "all")
    if isinstance(quorum, bool) or not enough:
        raise BadValue(
            f"quorum={quorum!r} cannot be reached by {len(asked)} people.",
            hint='Write "any", "all", or how many of those named in `of` must approve.',
            code="value.bad_policy",
        )
