"""Interfaces with which a goal run evaluates scripts and loads values. Pure.

A ``ScriptReader`` evaluates CEL directly. The runtime evaluates scripts that may not run inside a decision (Lua, Ale):
the reader raises ``MissingInputs`` with a predicate, the runtime supplies the result, and the decision is repeated.
Only ``follow`` does this, never ``decide``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from weft.core.events import Style
from weft.core.goal.definitions import Script, StepDef
from weft.core.goal.plan import GoalPlan
from weft.core.run.env import Env, MissingInputs, Predicate
from weft.core.values import MARKED, is_ref, parse_ref, unseal

_canonical = msgspec.json.Encoder(order="sorted").encode
decode_json = msgspec.json.Decoder().decode
encode_json = msgspec.json.Encoder().encode
_parts: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
decode_parts = _parts.decode
"""Split a JSON object into its fields, each still JSON. Raises msgspec.ValidationError."""


class Unmapped(Exception):
    """A mapping selects nothing in its value."""


class ScriptReader(Protocol):
    """Evaluates scripts. Each method may raise MissingInputs, or a WeftError that says what is wrong."""

    def holds(self, script: Script, bindings: Mapping[str, Any]) -> bool:
        """Return whether a predicate or match is true."""
        ...

    def value(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        """Return the result of a mapping, as JSON. Also raises Unmapped."""
        ...

    def text(self, template: str, bindings: Mapping[str, Any]) -> str:
        """Return a title with its ``${…}`` filled in."""
        ...

    def names(self, script: Script) -> frozenset[str]:
        """Return the names that a script uses."""
        ...


class HostedGoals(Protocol):
    """The parts of a program that a goal run needs in addition to its plan."""

    @property
    def reader(self) -> ScriptReader: ...

    def version_of(self, workflow: str) -> tuple[str, Style]:
        """Return the version of a child workflow to start, and its style."""
        ...

    def plan(self, goals: Sequence[str], given: Sequence[str]) -> GoalPlan | None:
        """Return the plan for these goals, or for the goals of this program if it has any. Raises UnknownStep."""
        ...

    def body(self, definition: StepDef) -> str:
        """Return the name under which a worker finds the code for a step (``step``, ``http``, ``script``)."""
        ...


class TrialGoals:
    """A program for the copy of a run. Whichever workflows this host has, child runs begin in the copy."""

    def __init__(self, program: HostedGoals) -> None:
        self.reader = program.reader
        self.body = program.body
        self.plan = program.plan

    def version_of(self, workflow: str) -> tuple[str, Style]:
        return "", "code"


def script_predicate(script: Script, bindings: Mapping[str, Any]) -> Predicate:
    """Return the predicate with which the runtime evaluates a script."""
    return Predicate(script.lang, script.source, _canonical(bindings))


def load_content(raw: bytes, env: Env) -> bytes:
    """Return the JSON of a value in the log. Raises MissingInputs."""
    stored = bytes(raw)
    return load_contents([stored], env)[0] if stored.startswith(MARKED) else stored


def load_contents(raws: Iterable[bytes], env: Env) -> list[bytes]:
    """Return the JSON of several values, so that all missing blobs are requested at once."""
    loaded: list[bytes] = []
    missing: list[str] = []
    for raw in raws:
        stored = bytes(raw)
        if not stored.startswith(MARKED):
            loaded.append(stored)
            continue
        if not is_ref(stored):
            loaded.append(unseal(stored))
            continue
        digest = parse_ref(stored).digest
        blob = env.blob(digest)
        if blob is None:
            missing.append(digest)
        else:
            loaded.append(blob)
    if missing:
        raise MissingInputs(blobs=missing)
    return loaded


def decode_value(raw: bytes, env: Env) -> Any:
    """Return a value in the log as JSON builtins. Raises MissingInputs."""
    return decode_json(load_content(raw, env))
