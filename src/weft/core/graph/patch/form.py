"""A patch of a graph run as its author writes it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from weft.core.event_parts import ABSENT
from weft.core.run.patch_plan import PatchRefusal


class TokenName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, named by its node, by node and innermost branch, or by its id."""

    node: str = ""
    branch: int | None = None
    token: str = ""


class MoveForm(TokenName, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Move a token to another node. ``via``: the node from which it comes, if the target is a join."""

    to: str
    via: str = ""
    input: Raw = ABSENT


class StartForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Start one token more at a node, in the scope of the token ``beside``, or else in that of the run."""

    node: str
    input: Raw = ABSENT
    beside: str = ""


class GraphPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A patch of a graph run. Exactly one of ``ops``, ``document`` and ``to`` is given."""

    weft: Literal["patch/1"] = "patch/1"
    base: str = ""
    ops: list[Any] | UnsetType = UNSET
    document: dict[str, Any] | UnsetType = UNSET
    to: str = ""
    rename: dict[str, str] = {}
    move: list[MoveForm] = []
    drop: list[TokenName] = []
    start: list[StartForm] = []
    restart: list[str | TokenName] = []
    again: list[str] = []
    set: dict[str, Any] = {}
    unchecked: bool = False
    reason: str = ""

    @property
    def has_instructions(self) -> bool:
        """Whether the patch does more than change the document."""
        return bool(self.move or self.drop or self.start or self.restart or self.again or self.set)

    @property
    def ways(self) -> list[str]:
        """The ways in which the patch names the new document. There must be exactly one."""
        given = {"ops": self.ops is not UNSET, "document": self.document is not UNSET, "to": bool(self.to)}
        return [name for name, there in given.items() if there]


class GraphReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What only the runtime can find out about the new version: the reasons against it."""

    refusals: list[PatchRefusal] = []


_decoder: msgspec.json.Decoder[GraphPatch] = msgspec.json.Decoder(GraphPatch)


_report: msgspec.json.Decoder[GraphReport] = msgspec.json.Decoder(GraphReport)


def decode_report(raw: bytes) -> GraphReport:
    """Read what the runtime has found out. Empty: nothing."""
    return _report.decode(raw) if raw else GraphReport()


def decode_patch(raw: bytes) -> GraphPatch:
    """Read a patch. Raises msgspec.ValidationError."""
    return _decoder.decode(raw)
