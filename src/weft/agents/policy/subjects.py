"""To whom a rule applies: ``agent:support``, ``tenant:*``. Pure."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from weft.agents.policy.globs import is_match
from weft.agents.policy.verdicts import Asked

SubjectKind = Literal["tenant", "workflow", "agent", "node", "user", "role"]
KINDS: tuple[SubjectKind, ...] = get_args(SubjectKind)


class Subjects(msgspec.Struct, frozen=True):
    """The subjects of a rule. Of one kind any must match, of several kinds all. None: everybody."""

    patterns: tuple[tuple[SubjectKind, tuple[str, ...]], ...] = ()

    def include(self, asked: Asked) -> bool:
        """Return whether the rule applies to whoever asks."""
        return all(_is_one(kind, patterns, asked) for kind, patterns in self.patterns)

    def __str__(self) -> str:
        return ", ".join(f"{kind}:{pattern}" for kind, patterns in self.patterns for pattern in patterns)


EVERYBODY = Subjects()


def _is_one(kind: SubjectKind, patterns: tuple[str, ...], asked: Asked) -> bool:
    match kind:
        case "role":
            names: tuple[str, ...] = asked.roles
        case "tenant":
            names = (asked.tenant,)  # runs without a tenant belong to the operator, whom tenant:* includes
        case "workflow":
            names = tuple(name for name in (asked.workflow, asked.caller) if name)
        case _:
            name: str = getattr(asked, kind)
            names = (name,) if name else ()
    return any(is_match(pattern, name) for pattern in patterns for name in names)
