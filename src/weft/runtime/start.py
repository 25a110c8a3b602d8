"""What a host adds to a start before it is decided: the meaning of the name, and the defaults of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from weft.core import commands as c
from weft.core import values
from weft.errors import RunCancelled, UnknownWorkflow
from weft.ports.store import Resolved
from weft.runtime.draft import Draft
from weft.runtime.programs import NOT_CODE
from weft.runtime.words import read_words

if TYPE_CHECKING:
    from weft.runtime.actor import Actor


STOPPED_TEXT = "is cancelled or has failed"


def complete_start(actor: Actor, start: c.StartRun, draft: Draft) -> c.StartRun:
    """Fill in what the sender did not know. A start that cannot be is marked as refused."""
    if start.run_id != actor.id:
        taken = f"{start.run_id} exists already"
        start = msgspec.structs.replace(start, run_id=actor.id, refused=taken)
    if actor.cut_off:
        reason = f"the run at the root of its tree {STOPPED_TEXT}"
        start = msgspec.structs.replace(start, refused=reason, refused_as=RunCancelled.code)
    start = start if start.style else _resolved(actor, start, draft)
    return _with_defaults(actor, _with_words_read(actor, start) if start.words else start)


def _resolved(actor: Actor, start: c.StartRun, draft: Draft) -> c.StartRun:
    """A start by name, with the version, style and timeout that the name has here."""
    callee = actor.callee
    if callee is None:
        missing = f'No workflow "{start.workflow}" is known here.'
        return msgspec.structs.replace(start, style="code", refused=missing, refused_as=UnknownWorkflow.code)
    draft.resolved = Resolved(callee.version, callee.style)
    timeout_ms = start.timeout_ms or callee.timeout_ms
    return msgspec.structs.replace(start, version=callee.version, style=callee.style, timeout_ms=timeout_ms)


def _with_words_read(actor: Actor, start: c.StartRun) -> c.StartRun:
    """What was typed for a start, by the types that are declared here."""
    program = actor.ports.program(start.workflow, start.version)
    raw = bytes(start.input)
    given = actor.fetched.get(values.parse_ref(raw).digest) if values.is_ref(raw) else values.unseal(raw)
    if program is None or not isinstance(given, bytes):
        return start
    return msgspec.structs.replace(start, input=actor.keep(read_words(given, start.words, program.read)), words=[])


def _with_defaults(actor: Actor, start: c.StartRun) -> c.StartRun:
    """The defaults are recorded with the start: the run keeps them when the code changes."""
    program = actor.ports.program(start.workflow, start.version)
    if program is None or isinstance(program, NOT_CODE):
        return start
    if not program.defaults(None):
        return start
    raw = bytes(start.input)
    found = program.defaults(None if values.is_ref(raw) else values.unseal(raw))
    return msgspec.structs.replace(start, defaults=actor.keep(found)) if found else start
