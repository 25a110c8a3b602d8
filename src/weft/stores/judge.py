"""Whether a write is allowed: the rules of every store, written once. Pure.

A store reads the facts in the transaction that writes. Where one SQL statement reads, judges and writes at once (a
plain append, a batch in Postgres, claims and releases), the statement repeats the rule, and
``tests/contract/test_judge.py`` compares it with the functions here.

Rules: docs/internals/engine.md#rule-1.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Epoch, HostId, Seq
from weft.errors import Conflict
from weft.ports.store import (
    OVER_STATUSES,
    REOPENED_STATUSES,
    Append,
    KeyRow,
    Mail,
    Outcome,
    Release,
    Sent,
)


class RunFacts(Protocol):
    """What the row of a run says before the write."""

    @property
    def status(self) -> str: ...
    @property
    def seq(self) -> Seq: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def owner(self) -> HostId | None: ...
    @property
    def mail(self) -> int: ...


class KeyFacts(msgspec.Struct, frozen=True):
    """What a store knows about the keys of an append."""

    known: Mapping[str, KeyRow] = {}
    """Rows of keys that the run has. Others than those of the append may be among them."""
    arrived: Container[str | None] = ()
    """Keys of the inbox rows that the append consumes."""


NO_KEYS = KeyFacts()


def check_numbering(batch: Sequence[Append]) -> None:
    """Check that the events of each append continue its log without a gap. Raises Conflict."""
    for append in batch:
        for seq, event in enumerate(append.events, append.seq + 1):
            if event.seq != seq:
                raise Conflict(
                    f"Event {event.seq} of run {append.uid} stands where {seq} must be.",
                    uid=append.uid,
                    seq=event.seq,
                )


def judge_create(*, taken: bool) -> Outcome:
    """Judge a new row. ``taken``: another row has its id or its uid."""
    return Outcome.ID_TAKEN if taken else Outcome.ACCEPTED


def judge_append(run: RunFacts | None, append: Append, host: HostId, keys: KeyFacts = NO_KEYS) -> Outcome:
    """Judge an append to an existing run. ``run`` is None if there is no such run."""
    # A run that is at rest or over has no owner: only an append that reopens it may write.
    owner = host if append.reopen is None else None
    if run is None or run.epoch != append.epoch or run.owner != owner:
        return Outcome.STALE_EPOCH
    if run.seq != append.seq or (append.reopen is not None and not _may_reopen(append, run.status)):
        return Outcome.STALE_SEQ
    if append.keys and any(_is_used(row, keys) for row in append.keys):
        return Outcome.KEY_TAKEN
    if append.status in OVER_STATUSES and run.mail != append.mail_taken:
        return Outcome.MAIL_WAITING
    return Outcome.ACCEPTED


def judge_release(run: RunFacts | None, release: Release) -> Outcome:
    """Judge a release. ``run`` is None if there is no such run."""
    if run is None or run.epoch != release.epoch or run.owner is None:
        return Outcome.STALE_EPOCH
    if run.seq != release.seq:
        return Outcome.STALE_SEQ
    if run.mail != release.mail_taken:
        return Outcome.MAIL_WAITING
    return Outcome.ACCEPTED


def judge_mail(run: RunFacts | None, mail: Mail, key: KeyRow | None, *, posted: bool) -> Sent:
    """Judge a piece of mail. ``key``: the run's row of the mail's key; ``posted``: the run has had mail of this id.

    Keys and ids come before the status: mail that is sent again is a duplicate even after the run has ended.
    """
    if run is None:
        return Sent.UNKNOWN_RUN
    if key is not None:
        return Sent.DUPLICATE if key.digest == mail.digest else Sent.KEY_REUSED
    if posted:
        return Sent.DUPLICATE
    return Sent.OVER if run.status in OVER_STATUSES else Sent.ACCEPTED


def is_current(run: RunFacts | None, epoch: Epoch | None) -> bool:
    """Return whether a run is open and still in this epoch, so that it may be claimed and its tasks offered."""
    return run is not None and run.status not in OVER_STATUSES and run.epoch == epoch


def stays_over(append: Append, status: str) -> bool:
    """Return whether the append only adds events to the log of a run that is over."""
    return append.reopen is not None and status in OVER_STATUSES and append.status == status


def _may_reopen(append: Append, status: str) -> bool:
    return status in REOPENED_STATUSES or stays_over(append, status)


def _is_used(row: KeyRow, keys: KeyFacts) -> bool:
    """Return whether a key is used up. One that arrived by mail is written again when that mail is consumed."""
    known = keys.known.get(row.key)
    if known is None:
        return False
    return known.seq != 0 or known.digest != row.digest or row.key not in keys.arrived
