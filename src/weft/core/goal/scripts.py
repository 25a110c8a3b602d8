"""What a goal run asks of its shell: scripts are read and values are brought by others. Pure.

A `Reader` evaluates CEL on the spot. What may not run inside a decision (Lua, Ale) it asks of the shell: it raises
`MissingInputs` with the `question` below, the shell answers it to the reader, and the same decision is made again. Only
`follow` asks, never `decide`.
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
"""The fields of a JSON object, each still JSON. Raises msgspec.ValidationError."""


class Unmapped(Exception):
    """A mapping selects nothing of its value."""


class ScriptReader(Protocol):
    """Evaluates what an author wrote. Each method raises a WeftError that says what is wrong, or MissingInputs."""

    def holds(self, script: Script, bindings: Mapping[str, Any]) -> bool:
        """Whether a predicate or match holds."""
        ...

    def value(self, script: Script, bindings: Mapping[str, Any]) -> Any:
        """What a mapping makes of its value, as JSON. Raises Unmapped too."""
        ...

    def text(self, template: str, bindings: Mapping[str, Any]) -> str:
        """A title with its `${…}` filled in."""
        ...

    def names(self, script: Script) -> frozenset[str]:
        """The names that a script looks at."""
        ...


class HostedGoals(Protocol):
    """What a goal run needs beside its plan, which it holds itself."""

    @property
    def reader(self) -> ScriptReader: ...

    def version_of(self, workflow: str) -> tuple[str, Style]:
        """Which version of a child workflow is started, and its style."""
        ...

    def plan(self, given: Sequence[str], goals: Sequence[str] = ()) -> GoalPlan | None:
        """The plan for these goals, or for those that this program stands for, if any. Raises UnknownStep."""
        ...

    def body(self, definition: StepDef) -> str:
        """Under which name a worker finds what performs a step (`step`, `http`, `script`)."""
        ...


def question(script: Script, bindings: Mapping[str, Any]) -> Predicate:
    """What a reader asks of the shell for a script that no decision may run."""
    return Predicate(script.lang, script.source, _canonical(bindings))


def content(raw: bytes, env: Env) -> bytes:
    """The JSON that a value of the log stands for. Raises MissingInputs."""
    stored = bytes(raw)
    return contents([stored], env)[0] if stored.startswith(MARKED) else stored


def contents(raws: Iterable[bytes], env: Env) -> list[bytes]:
    """The same for many, so that all that is missing is asked for at once."""
    found: list[bytes] = []
    missing: list[str] = []
    for raw in raws:
        stored = bytes(raw)
        if not stored.startswith(MARKED):
            found.append(stored)
            continue
        if not is_ref(stored):
            found.append(unseal(stored))
            continue
        digest = parse_ref(stored).digest
        blob = env.blob(digest)
        if blob is None:
            missing.append(digest)
        else:
            found.append(blob)
    if missing:
        raise MissingInputs(blobs=missing)
    return found


def decoded(raw: bytes, env: Env) -> Any:
    """A value of the log as JSON builtins. Raises MissingInputs."""
    return decode_json(content(raw, env))
