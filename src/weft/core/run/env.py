"""What a decision may use beside the state: the time, checks, blobs, and how it asks the shell for more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.run.state import State

SchemaCheck = Callable[[dict[str, Any], bytes], str | None]


class Predicate(msgspec.Struct, frozen=True):
    """A condition or predicate that no pure decision may evaluate, with the values it looks at, as JSON.

    The same question always has the same answer, so whoever has heard it may remember it.
    """

    language: str
    source: str
    values: bytes


class MissingInputs(Exception):
    """A decision needs what only the shell can bring: blobs, or the answer to a question.

    Nothing has happened; the same decision is asked for again when the shell has it.
    """

    def __init__(self, *, blobs: Sequence[str] = (), questions: Sequence[Predicate] = ()) -> None:
        super().__init__("something must be brought first")
        self.blobs = list(blobs)
        self.questions = list(questions)


def no_blob(_: str) -> bytes | None:
    """Nothing is in memory."""
    return None


def opened_now(_: Raw, read: Callable[[], Any]) -> Any:
    """Nothing is remembered."""
    return read()


def any_child(_: State) -> None:
    """There is no limit."""


def kept_inline(raw: bytes) -> Raw:
    """A value for the log, where nothing is too large for it."""
    return Raw(values.seal(raw))


class Env(msgspec.Struct, frozen=True):
    """Facts from outside that a decision may use."""

    now: int
    check: SchemaCheck
    """Whether JSON fits a JSON Schema: None, or what is wrong with it."""
    blob: Callable[[str], bytes | None] = no_blob
    """The content of a blob, if it is in memory."""
    keep: Callable[[bytes], Raw] = kept_inline
    """JSON as the log holds it: itself, or a reference to a blob that is durable before the append is."""
    check_child: Callable[[State], None] = any_child
    """Refuse to start another child of this run. Raises LimitExceeded, RunCancelled."""
    recall: Callable[[Raw, Callable[[], Any]], Any] = opened_now
    """A large value that many decisions look into: as it was opened before, or as the function opens it now."""
