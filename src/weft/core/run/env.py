"""The environment of a decision: the time, checks and blobs, and how to request missing inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.run.state import State

SchemaCheck = Callable[[dict[str, Any], bytes], str | None]


class Predicate(msgspec.Struct, frozen=True):
    """A condition that the pure core must not evaluate itself, with the values it reads, as JSON.

    Equal predicates have equal results, so results can be cached.
    """

    language: str
    source: str
    values: bytes


class MissingInputs(Exception):
    """A decision needs something that only the runtime can provide: blobs, or the results of predicates.

    Nothing has changed. The runtime provides the inputs and repeats the decision.
    """

    def __init__(self, *, blobs: Sequence[str] = (), questions: Sequence[Predicate] = ()) -> None:
        super().__init__("the decision needs blobs or predicates that are not loaded yet")
        self.blobs = list(blobs)
        self.questions = list(questions)


def no_blob(_: str) -> bytes | None:
    """Return no blob: none is in memory."""
    return None


def opened_now(_: Raw, read: Callable[[], Any]) -> Any:
    """Read a value without a cache."""
    return read()


def any_child(_: State) -> None:
    """Allow any child."""


def kept_inline(raw: bytes) -> Raw:
    """Store a value in the log, however large it is."""
    return Raw(values.seal(raw))


class Env(msgspec.Struct, frozen=True):
    """Information from outside the run that a decision may use."""

    now: int
    check: SchemaCheck
    """Checks JSON against a JSON Schema. Returns None, or what is wrong."""
    blob: Callable[[str], bytes | None] = no_blob
    """Returns the content of a blob if it is in memory."""
    keep: Callable[[bytes], Raw] = kept_inline
    """Converts JSON to what the log stores: the JSON, or a reference to a blob that is durable before the append."""
    check_child: Callable[[State], None] = any_child
    """Checks whether this run may start another child. Raises LimitExceeded, RunCancelled."""
    recall: Callable[[Raw, Callable[[], Any]], Any] = opened_now
    """Returns a large value that many decisions read: from the cache, or opened by the function."""
