"""The outputs of a step: read from raw results, checked, and combined if there were several items. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.goal import types
from weft.core.goal.definitions import AskWay, Give, GoalWay, StepDef
from weft.core.goal.scripts import ScriptReader, Unmapped, content, contents, decode_json, decode_parts, encode_json
from weft.core.goal.shape import StepShape
from weft.core.run.composites import open_parts
from weft.core.run.env import Env
from weft.core.values import MARKED, is_ref
from weft.errors import Failure, WeftError

BAD_OUTPUT = "bad_output"
ITEM = "item"


class BadOutput(Exception):
    """A result that does not have the type that its step declares."""

    def __init__(self, fact: str, why: str) -> None:
        super().__init__(why)
        self.fact = fact
        self.why = why

    def failure(self, step: str, item: int | None = None) -> Failure:
        """Return the final failure of the step. ``item``: the index of the wrong result."""
        return Failure(
            type=BAD_OUTPUT,
            message=f"{BAD_OUTPUT}: {self.fact}",
            code=BAD_OUTPUT,
            step=step,
            attributes={"why": self.why} if item is None else {"why": self.why, ITEM: item},
        )


def is_deferred(step: StepShape, result: bytes) -> bool:
    """Tell whether the shell must supply something before a result can be checked."""
    return step.late or (bytes(result).startswith(MARKED) and is_ref(bytes(result)))


def outputs_of(step: StepShape, result: bytes, reader: ScriptReader, env: Env) -> dict[str, bytes]:
    """Return the declared outputs in a result, by fact, as JSON. A missing output is not a failure.

    Raises:
        BadOutput: an output does not have its declared type, or cannot be made.
        MissingInputs: the shell must supply something first.
    """
    if not step.gives:
        return {}
    stored = bytes(result)
    plain = step.takes is not None and not stored.startswith(MARKED)
    body = stored if plain else _body(step.definition, result, env)
    found: dict[str, bytes] = {}
    parts: dict[str, Raw] | None = None
    for shape in step.gives:
        fact, give = shape.fact, shape.give
        if give.mapping is not None:
            try:
                raw = _mapped(fact, give, body, reader)
            except Unmapped:
                continue
        elif give.whole:
            raw = body
        else:
            if parts is None:
                parts = _split(fact, body)
            part = parts.get(shape.key)
            if part is None:
                continue
            raw = bytes(part)
        if shape.type is not None:
            why = types.unfit(shape.type, decode_json(raw), raw, env.check)
            if why is not None:
                raise BadOutput(fact, why)
        found[fact] = raw
    return found


def _body(definition: StepDef, result: bytes, env: Env) -> bytes:
    if isinstance(definition.way, AskWay):
        return encode_json(open_parts(decode_json(result), env.blob))  # a form inside the answer may be a reference
    body = content(result, env)
    if isinstance(definition.way, GoalWay):  # only the outputs of the goals, not all that the goal run gives
        return bytes(decode_parts(body).get("result", Raw(b"null")))
    return body


def _split(fact: str, body: bytes) -> dict[str, Raw]:
    if body == b"null":
        return {}
    try:
        return decode_parts(body)
    except msgspec.ValidationError:
        raise BadOutput(fact, f"the result is {types.kind(decode_json(body))}, not an object") from None


def _mapped(fact: str, give: Give, body: bytes, reader: ScriptReader) -> bytes:
    assert give.mapping is not None
    try:
        return encode_json(reader.value(give.mapping, {"value": decode_json(body)}))
    except WeftError as error:
        raise BadOutput(fact, error.message) from error


def aggregated(
    step: StepShape, results: Mapping[int, Raw], entries: Sequence[Mapping[str, Any]], reader: ScriptReader, env: Env
) -> dict[str, bytes]:
    """Return the outputs of a fan-out: each is an array of {each facts…, output}, in the order of the items.

    ``entries``: the each values of all items, by index.
    """
    order = sorted(results)
    if not isinstance(step.definition.way, AskWay):
        contents((results[index] for index in order), env)  # ask for everything that is missing at once
    lists: dict[str, list[dict[str, Any]]] = {shape.fact: [] for shape in step.gives}
    for index in order:
        for fact, raw in outputs_of(step, results[index], reader, env).items():
            lists[fact].append({**entries[index], fact: Raw(raw)})
    return {fact: encode_json(found) for fact, found in lists.items()}
