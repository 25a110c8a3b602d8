"""The environment of a decision: the time, checks and blobs, and the exception that requests missing inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core import values
from weft.core.events import AnyEvent
from weft.core.run.state import State

SchemaCheck = Callable[[dict[str, Any], bytes], str | None]


class Predicate(msgspec.Struct, frozen=True):
    """A condition that only the runtime can evaluate, with the values that it reads, as JSON.

    Equal predicates have equal results, so results can be cached.
    """

    language: str
    source: str
    values: bytes


class MissingInputs(Exception):
    """A decision needs blobs, results of predicates or facts about runs that only the runtime can provide.

    Nothing has changed. The runtime provides the inputs and repeats the decision.
    """

    def __init__(
        self,
        *,
        blobs: Sequence[str] = (),
        questions: Sequence[Predicate] = (),
        runs: Sequence[str] = (),
        versions: Sequence[str] = (),
        replays: Sequence[str] = (),
        log: bool = False,
    ) -> None:
        """``runs``: ids of which it must be known whether there are such runs.

        ``versions``: versions of the run's workflow. ``replays``: versions against which the log must be replayed.
        ``log``: whether the whole log of the run is needed.
        """
        super().__init__("the decision needs blobs, predicates or runs that are not loaded yet")
        self.blobs = list(blobs)
        self.questions = list(questions)
        self.runs = list(runs)
        self.versions = list(versions)
        self.replays = list(replays)
        self.log = log


def no_blob(_: str) -> bytes | None:
    """Return None, because no blob is in memory."""
    return None


def no_run(_: str) -> bool | None:
    """Return that there is no such run."""
    return False


class PastEvent(msgspec.Struct, frozen=True):
    """An event of the run's log, and when it was recorded."""

    at: int
    event: AnyEvent


def no_log() -> Sequence[PastEvent] | None:
    """Return None, because the log is not in memory."""
    return None


def no_replay(_: str) -> bytes | None:
    """Return nothing, because code cannot be replayed here."""
    return b""


def read_directly(_: Raw, read: Callable[[], Any]) -> Any:
    """Read a value, without a cache."""
    return read()


def allow_any_child(_: State, _workflow: str, _given: Raw) -> None:
    """Allow the run to start any child."""


def accept_any_result(_step: str, _raw: bytes) -> None:
    """Accept any result, because the step is not known."""


def keep_inline(raw: bytes) -> Raw:
    """Seal a value for the log, however large it is."""
    return Raw(values.seal(raw))


class Env(msgspec.Struct):
    """Information from outside the run that a decision may use."""

    now: int
    """The only field that changes, from turn to turn."""
    check: SchemaCheck
    """Checks JSON against a JSON Schema. Returns the error, or None."""
    blob: Callable[[str], bytes | None] = no_blob
    """Returns the content of a blob if it is in memory."""
    run_exists: Callable[[str], bool | None] = no_run
    """Returns whether there is a run with this id. None: this must be fetched first, for each decision anew."""
    keep: Callable[[bytes], Raw] = keep_inline
    """Converts JSON to the form in the log: sealed, or a reference to a blob that is stored before the append."""
    check_child: Callable[[State, str, Raw], None] = allow_any_child
    """Checks whether this run may start a child run of a workflow with this input.

    Raises LimitExceeded, RunCancelled, NotAllowed.
    """
    check_result: Callable[[str, bytes], None] = accept_any_result
    """Checks a result that a person gives, as JSON, against the type of its step. Raises BadValue."""
    log: Callable[[], Sequence[PastEvent] | None] = no_log
    """Returns all events of the run up to now. None: they must be read first. Only rare decisions need them."""
    replayed: Callable[[str], bytes | None] = no_replay
    """Returns what the replay of the log against a version of the code found. None: it must be replayed first. Empty:
    that is not possible here."""
    patches_max: int = 100
    """How many patches a run can have."""
    recall: Callable[[Raw, Callable[[], Any]], Any] = read_directly
    """Returns a large value that many decisions read, from a cache or by calling the function."""
