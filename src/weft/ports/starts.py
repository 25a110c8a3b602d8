"""Starts of workflows that have a rule: the stored rules, and starts that are judged by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from weft.core.ids import RunId, RunUid
from weft.core.start_rules import StartRule
from weft.ports.new_run import NewRun


class RuledStart(msgspec.Struct, frozen=True, kw_only=True):
    """A start of a workflow that has a rule."""

    new: NewRun
    """The run that is created unless another one takes the start. Its slot names the workflow and the key."""
    rule: StartRule
    stored: bytes | None = None
    """The stored rule by which the start was judged; None if the code of the workflow declares it here."""
    chosen: bool = False
    """The caller chose the id. It names this start from now on, whichever run takes it."""
    digest: str = ""
    """The digest of the input, by which the same start is recognized."""
    cancel: bytes = b""
    """The command for a run that is replaced."""


class StartOutcome(StrEnum):
    """The judgement on a start. Only ``CREATED`` and ``JOINED`` write anything."""

    CREATED = "created"
    JOINED = "joined"
    """Another run takes the start: the open run of a singleton, or one that waits for inputs."""
    OPEN = "open"
    """A run with the same key is open, and the rule refuses a second one."""
    ID_TAKEN = "id_taken"
    ID_REUSED = "id_reused"
    """The id named a start with another input, which another run took."""
    RULE_CHANGED = "rule_changed"
    """The stored rule is not the one by which the start was judged."""


class StartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a start: the run that it created or joined, or that is in its way."""

    outcome: StartOutcome
    uid: RunUid = RunUid("")
    id: RunId = RunId("")
    replaced: Sequence[RunId] = ()
    """The runs that were told to cancel."""


class RuledStarts(Protocol):
    """The stored rules, and the starts that they are about."""

    async def rules(self) -> Mapping[str, bytes]:
        """Return all stored rules, by the names of their workflows."""
        ...

    async def rule(self, workflow: str) -> bytes | None:
        """Return the stored rule of a workflow."""
        ...

    async def set_rules(self, changes: Mapping[str, bytes | None]) -> None:
        """Store the rules of workflows. None removes one."""
        ...

    async def start(self, start: RuledStart) -> StartAnswer:
        """Judge a start by its rule and carry it out, in one transaction. Starts with the same slot wait in line."""
        ...

    async def with_slot(self, slot: str) -> Mapping[RunUid, RunId]:
        """Return the open runs with this slot, oldest first."""
        ...

    async def take_slot(self, uid: RunUid, slot: str) -> RunId | None:
        """Give a slot to a run that was created without one. Returns the open run that has it, if there is another."""
        ...
