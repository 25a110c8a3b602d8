"""Judge whether a write is allowed, by the rules of every store. Pure.

A store reads the facts in the transaction that writes. Where one SQL statement reads, judges and writes at once (a
plain append, a batch in Postgres, claims and releases), the statement repeats the rule, and
``tests/contract/test_judge.py`` compares it with the functions here.

Rules: docs/internals/engine.md#rule-1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from weft.core.ids import Epoch, HostId, RunUid, Seq
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
    """The row of a run as it is before the write."""

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
    """The stored keys that decide whether an append may use its own."""

    known: Mapping[str, KeyRow] = {}
    """The keys of the run, or at least those that the append also has."""
    arrived: Container[str | None] = ()
    """Keys of the inbox rows that the append consumes."""


NO_KEYS = KeyFacts()


def check_numbering(batch: Sequence[Append]) -> None:
    """Check that the events of each append continue its log without a gap. Raises Conflict."""
    for append in batch:
        seq: int = append.seq
        for event in append.events:
            seq += 1
            if event.seq != seq:
                raise Conflict(
                    f"Event {event.seq} of run {append.uid} is in the place of event {seq}.",
                    uid=append.uid,
                    seq=event.seq,
                )


def judge_create(*, taken: bool) -> Outcome:
    """Judge a new row. ``taken`` says that another row has its id or its uid."""
    return Outcome.ID_TAKEN if taken else Outcome.ACCEPTED


def judge_append(
    run: RunFacts | None, append: Append, host: HostId, keys: KeyFacts = NO_KEYS, *, is_slot_taken: bool = False
) -> Outcome:
    """Judge an append to an existing run. ``run`` is None if there is no such run.

    ``is_slot_taken``: the append reopens the run, and another open run has its slot.
    """
    if is_slot_taken:
        return Outcome.SLOT_TAKEN
    # A run that is held or over has no owner. Only an append that reopens it may write.
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


def judge_together(run: RunFacts | None, append: Append, *, hot: bool = False) -> Outcome:
    """Judge an append of ``write_together``, for which it does not matter who owns the run.

    ``hot``: the run names a WAL that is not drained, so its log may be longer than the store knows.
    """
    if run is None or run.epoch != append.epoch:
        return Outcome.STALE_EPOCH
    if run.seq != append.seq or (append.reopen is None and run.status in OVER_STATUSES):
        return Outcome.STALE_SEQ
    if hot:
        return Outcome.STALE_SEQ
    return Outcome.ACCEPTED if run.mail == append.mail_taken else Outcome.MAIL_WAITING


def judge_recorded(batch: Sequence[Append]) -> list[Outcome]:
    """Judge the appends of a ``write_together`` whose entry is in the audit table already."""
    return [Outcome.KEY_TAKEN for _ in batch]


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
    """Judge a piece of mail. ``key`` is the run's row for the mail's key; ``posted``: mail with this id came before.

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


def may_claim(run: RunFacts, host: HostId, *, drained: bool) -> bool:
    """Return whether a host may claim a run as far as its WAL is concerned.

    ``drained``: the run names no WAL, or one that is drained. An owner knows what its own WAL holds.
    """
    return drained or run.owner == host


def is_elsewhere(outcome: Outcome) -> bool:
    """Return whether an append was refused because the log does not end where it begins."""
    return outcome is Outcome.STALE_SEQ


def is_from_other_writer(outcome: Outcome) -> bool:
    """Return whether an append was refused because the run is no longer its writer's."""
    return outcome is Outcome.STALE_EPOCH


def only_adds_to_ended(append: Append, status: str) -> bool:
    """Return whether the append only adds events to the log of a run that is over."""
    return append.reopen is not None and status in OVER_STATUSES and append.status == status


def takes_slot(append: Append) -> bool:
    """Return whether an append opens a run again, so that no other run with its slot may be open."""
    return append.reopen is not None and append.status not in OVER_STATUSES


def judge_reopened(refused: Iterable[RunUid]) -> dict[RunUid, Outcome]:
    """Judge the appends to runs that cannot be opened again, because other open runs have their slots."""
    return dict.fromkeys(refused, Outcome.SLOT_TAKEN)


def _may_reopen(append: Append, status: str) -> bool:
    return status in REOPENED_STATUSES or only_adds_to_ended(append, status)


def _is_used(row: KeyRow, keys: KeyFacts) -> bool:
    """Return whether a key is taken. The key of mail may be written a second time, when that mail is consumed."""
    known = keys.known.get(row.key)
    if known is None:
        return False
    return known.seq != 0 or known.digest != row.digest or row.key not in keys.arrived


def has_only_events(append: Append) -> bool:
    """Return whether an append has events and nothing else."""
    return (
        append.status is None
        and append.create is None
        and not (append.taken or append.keys or append.mail or append.refs or append.children or append.ledger)
        and append.attributes is None
        and append.reopen is None
        and append.resolved is None
        and append.snapshot is None
    )


def has_no_extras(append: Append) -> bool:
    """Return whether an append has only events, apart from beginning or ending its run."""
    return (
        not (append.taken or append.keys or append.mail or append.refs or append.children or append.ledger)
        and append.attributes is None
        and append.reopen is None
        and append.resolved is None
        and append.snapshot is None
    )
