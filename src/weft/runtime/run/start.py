"""Complete a start before it is decided: resolve the workflow's name, and add the defaults of the parameters."""

from __future__ import annotations

from typing import Protocol

import msgspec
from msgspec import Raw

from weft.core import commands as c
from weft.core import values
from weft.core.ids import RunId
from weft.errors import RunCancelled, UnknownWorkflow, WeftError
from weft.ports.store import Resolved
from weft.runtime.catalogue import Callee
from weft.runtime.run.draft import Draft
from weft.runtime.run.ports import RunPorts
from weft.runtime.typed_words import read_words

STOPPED_TEXT = "is cancelled or has failed"


class StartingRun(Protocol):
    """A run that has no event yet."""

    id: RunId
    ports: RunPorts
    callee: Callee | None
    cut_off: bool
    fetched: dict[str, bytes | WeftError]

    def keep(self, raw: bytes) -> Raw:
        """Return a value in the form of the log."""
        ...


def complete_start(run: StartingRun, start: c.StartRun, draft: Draft) -> c.StartRun:
    """Fill in the fields that the sender did not know. A start that is impossible is marked as refused."""
    if start.run_id != run.id:
        taken = f"{start.run_id} exists already"
        start = msgspec.structs.replace(start, run_id=run.id, refused=taken)
    if run.cut_off:
        reason = f"the run at the root of its tree {STOPPED_TEXT}"
        start = msgspec.structs.replace(start, refused=reason, refused_as=RunCancelled.code)
    start = start if start.style else _resolve_start(run, start, draft)
    return _with_declared(run, _with_words_read(run, start) if start.words else start)


def _resolve_start(run: StartingRun, start: c.StartRun, draft: Draft) -> c.StartRun:
    """Resolve a start by name: add the version, style and timeout of the workflow with this name here."""
    callee = run.callee
    if callee is None:
        missing = f'No workflow "{start.workflow}" is known here.'
        return msgspec.structs.replace(start, style="code", refused=missing, refused_as=UnknownWorkflow.code)
    draft.resolved = Resolved(callee.version, callee.style)
    timeout_ms = start.timeout_ms or callee.timeout_ms
    return msgspec.structs.replace(start, version=callee.version, style=callee.style, timeout_ms=timeout_ms)


def _with_words_read(run: StartingRun, start: c.StartRun) -> c.StartRun:
    """Convert the words that were typed for a start, by the types that are declared here."""
    program = run.ports.program(start.workflow, start.version)
    raw = bytes(start.input)
    given = run.fetched.get(values.parse_ref(raw).digest) if values.is_ref(raw) else values.unseal(raw)
    if program is None or not isinstance(given, bytes):
        return start
    return msgspec.structs.replace(start, input=run.keep(read_words(given, start.words, program.read)), words=[])


def _with_declared(run: StartingRun, start: c.StartRun) -> c.StartRun:
    """Record the defaults with the start, who must agree to patches, and the budget.

    The run keeps them when the code changes.
    """
    program = run.ports.program(start.workflow, start.version)
    if program is None:
        return start
    if program.review or start.review:
        start = msgspec.structs.replace(start, review=list(program.review))
    if program.budget is not None and start.budget is None:
        start = msgspec.structs.replace(start, budget=program.budget)
    if not program.defaults(None):
        return start
    raw = bytes(start.input)
    found = program.defaults(None if values.is_ref(raw) else values.unseal(raw))
    return msgspec.structs.replace(start, defaults=run.keep(found)) if found else start
