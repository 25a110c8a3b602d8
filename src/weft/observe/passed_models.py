"""Models of agents that did not answer, so that the next one of their ``fallback`` was asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from weft.agents.models.failures import UNAVAILABLE
from weft.errors import Failure

_PLACE = re.compile(r"turn/~(\d+)/(?:model|answer)(?:#\d+)?(?:/(\d+))?")


class PassedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that did not answer in a turn."""

    turn: int
    model: str
    why: str
    instead: str
    """The model that was asked next."""

    def __str__(self) -> str:
        return f"{self.model} did not answer ({self.why}), so {self.instead} was asked"


def passed_models(models: Sequence[str], failed: Iterable[tuple[str, Failure]]) -> list[PassedModel]:
    """Return the models that others stood in for, from the places that failed. ``models`` are those of the agent."""
    found = []
    for place, failure in failed:
        match = _PLACE.fullmatch(place)
        if match is None or failure.code != UNAVAILABLE:
            continue
        number = int(match[2] or 1)
        if number < len(models):
            why = failure.message.partition("\n")[0].rstrip(". ")
            passed = PassedModel(turn=int(match[1]), model=models[number - 1], why=why, instead=models[number])
            found.append(passed)
    return found
