"""Read the outputs of a step from its raw results, check their types, and combine those of several items. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.goal import types
from weft.core.goal.definitions import AskWay, Give, GoalWay, StepDef
from weft.core.goal.scripts import (
    ScriptReader,
    Unmapped,
    decode_json,
    decode_parts,
    encode_json,
    load_content,
    load_contents,
)
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
        """Return the final failure of the step. ``item`` is the index of the result."""
        return Failure(
            type=BAD_OUTPUT,
            message=f"{BAD_OUTPUT}: {self.fact}",
            code=BAD_OUTPUT,
            step=step,
            attributes={"why": self.why} if item is None else {"why": self.why, ITEM: item},
        )


def is_deferred(step: StepShape, result: bytes) -> bool:
    """Return whether a result cannot be checked yet, because the runtime has to load or evaluate something first."""
    return step.deferred or (bytes(result).startswith(MARKED) and is_ref(bytes(result)))


def read_outputs(step: StepShape, result: bytes, reader: ScriptReader, env: Env) -> dict[str, bytes]:
    """Return the declared outputs in a result, by fact, as JSON. A missing output is not a failure.

    Raises:
        BadOutput: an output has the wrong type, or its mapping failed.
        MissingInputs: the runtime has to load a blob or evaluate a mapping first.
    """
    if not step.gives:
        return {}
    stored = bytes(result)
    unmarked = step.takes is not None and not stored.startswith(MARKED)
    body = stored if unmarked else _result_json(step.definition, result, env)
    outputs: dict[str, bytes] = {}
    parts: dict[str, Raw] | None = None
    for shape in step.gives:
        fact, give = shape.fact, shape.give
        if give.mapping is not None:
            try:
                raw = _map_value(fact, give, body, reader)
            except Unmapped:
                continue
        elif give.whole:
            raw = body
        else:
            if parts is None:
                parts = _split_result(fact, body)
            part = parts.get(shape.key)
            if part is None:
                continue
            raw = bytes(part)
        if shape.type is not None:
            why = types.normal_type_error(shape.type, decode_json(raw), raw, env.check)
            if why is not None:
                raise BadOutput(fact, why)
        outputs[fact] = raw
    return outputs


def _result_json(definition: StepDef, result: bytes, env: Env) -> bytes:
    if isinstance(definition.way, AskWay):
        return encode_json(open_parts(decode_json(result), env.blob))  # a form inside the answer may be a reference
    body = load_content(result, env)
    if isinstance(definition.way, GoalWay):  # only the outputs of the goals, not all facts
        return bytes(decode_parts(body).get("result", Raw(b"null")))
    return body


def _split_result(fact: str, body: bytes) -> dict[str, Raw]:
    if body == b"null":
        return {}
    try:
        return decode_parts(body)
    except msgspec.ValidationError:
        raise BadOutput(fact, f"the result is {types.describe_value(decode_json(body))}, not an object") from None


def _map_value(fact: str, give: Give, body: bytes, reader: ScriptReader) -> bytes:
    assert give.mapping is not None
    try:
        return encode_json(reader.value(give.mapping, {"value": decode_json(body)}))
    except WeftError as error:
        raise BadOutput(fact, error.message) from error


def aggregate_outputs(
    step: StepShape, results: Mapping[int, Raw], entries: Sequence[Mapping[str, Any]], reader: ScriptReader, env: Env
) -> dict[str, bytes]:
    """Return the outputs of a fan-out. Each is an array of objects with the item's ``each`` facts and its output.

    ``entries`` has the ``each`` values of all items, by index.
    """
    order = sorted(results)
    if not isinstance(step.definition.way, AskWay):
        load_contents((results[index] for index in order), env)  # request all missing blobs at once
    lists: dict[str, list[dict[str, Any]]] = {shape.fact: [] for shape in step.gives}
    for index in order:
        for fact, raw in read_outputs(step, results[index], reader, env).items():
            lists[fact].append({**entries[index], fact: Raw(raw)})
    return {fact: encode_json(values) for fact, values in lists.items()}
