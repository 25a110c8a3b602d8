"""What a code workflow or a goal declares about changes of its runs: ``changes={"review": ["team:ops"]}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from weft.errors import UsageError

HINT = 'Write: changes={"review": ["team:ops"]}'


class ChangeRules(TypedDict, total=False):
    """Who must agree when a run is changed."""

    review: str | Sequence[str]


def read_review(name: str, changes: Any) -> tuple[str, ...]:
    """Return who must agree to every patch of the runs of a workflow. Raises UsageError."""
    if changes is None:
        return ()
    if not isinstance(changes, Mapping) or set(changes) - {"review"}:
        raise UsageError(f"The changes of {name} can only say review, not {str(changes)[:60]}.", hint=HINT)
    review = changes.get("review", ())
    who = [review] if isinstance(review, str) else list(review) if isinstance(review, list | tuple) else [None]
    if not all(isinstance(one, str) and one.strip() for one in who):
        raise UsageError(f"The review of {name} is not a list of people or groups.", hint=HINT)
    return tuple(dict.fromkeys(who))
