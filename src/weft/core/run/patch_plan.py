"""The plan of a patch: everything that a patch does to a run, or why it is refused. Pure data."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.core import values

Verdict = Literal["", "sound", "unsound", "unknown"]


class PlanEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One consequence of a patch.

    ``what`` is a word such as fires, skips, unskips, reroutes, moves, drops, starts or restarts; ``begins`` is for a
    branch that has waited for room, ``cancels`` for one that is no longer needed. ``place`` says where in the run, and
    ``to`` where it leads, if it leads somewhere.
    """

    what: str
    place: str
    to: str = ""
    detail: str = ""


class PatchRefusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason why a patch is refused. ``code`` has a page: ``patch.node_removed``.

    ``place`` is a place in the run, ``path`` one in the document or in the patch. ``recorded`` and ``asked`` say what
    the log has there, and what code asks for instead.
    """

    code: str
    message: str
    place: str = ""
    path: str = ""
    hint: str = ""
    recorded: str = ""
    asked: str = ""


class PatchPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a patch does to a run as it stands. Equal plans have equal digests."""

    run: str
    base: str = ""
    version: str = ""
    rev: int = 0
    undoes: int = 0
    patch: str = ""
    """The digest of the patch as it was given."""
    changes: list[str] = []
    """What the new definition changes, in a line each, for styles that have documents. The digest leaves it out."""
    entries: list[PlanEntry] = []
    notes: list[str] = []
    verdict: Verdict = ""
    """The result of the check from the present position of the run, for styles that have one."""
    refusals: list[PatchRefusal] = []
    digest: str = ""
    unchanged: bool = False
    """Whether the run is already as the patch would leave it. Then nothing is written."""
    applied: bool = False
    accepted: bool = False
    """Whether the run has got the patch and had not applied it when this was returned."""
    review: list[str] = []
    """Who must agree before it is applied."""
    asked: int = 0
    """The number of the patch, if it is not applied but waits, or is being reviewed."""

    @property
    def ok(self) -> bool:
        """Whether the patch may be applied."""
        return not self.refusals

    def signed(self) -> PatchPlan:
        """Return the plan with its digest."""
        bare = msgspec.structs.replace(self, digest="", changes=[], **_LATER)
        return msgspec.structs.replace(self, digest=values.digest(_encode(bare)))


_LATER: dict[str, Any] = {"unchanged": False, "applied": False, "accepted": False, "review": [], "asked": 0}
"""What does not belong to the digest of a plan: it says what becomes of the patch."""
_encode = msgspec.json.Encoder(order="sorted").encode
