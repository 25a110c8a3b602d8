"""What an answer of a model is worth: the agent's output, or what is wrong with it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from weft.agents.models.step import ModelAnswer
from weft.agents.spec import FINAL_OUTPUT, AgentSpec
from weft.core import values
from weft.errors import WeftError
from weft.runtime.schema_check import schema_findings
from weft.steps.codec import Codec
from weft.steps.misfits import Misfit

_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[^\S\n]*\n(.*?)```", re.DOTALL)
"""It is matched in linear time: models have answered with a fence and line breaks for ever."""
PROBLEM_CHARS_MAX = 2_000
"""How much a model is told about an answer that does not fit: validators may quote all of it."""
_EMPTY = "Your answer was empty. Answer, or call a tool."
_CUT = "Your answer was cut off, because it was too long. Answer shorter."


class Output(msgspec.Struct, frozen=True):
    """The output of an agent, or the reason why an answer is none."""

    value: Any = None
    problem: str = ""


def read_output(spec: AgentSpec, answer: ModelAnswer, codec: Codec[Any] | None) -> Output:
    """Read an answer without tool calls, or with the call ``final_output``. ``codec`` is the declared type's."""
    if answer.finish == "length":
        return Output(problem=_CUT)
    final = next((call for call in answer.calls if call.name == FINAL_OUTPUT), None)
    text = final.arguments if final is not None else answer.text
    if spec.output is None:
        return Output(text) if text.strip() else Output(problem=_EMPTY)
    if not text.strip():
        return Output(problem=_EMPTY)
    raw = cut_json(text)
    if raw is None:
        return Output(problem="Your answer is not JSON. Answer with one JSON value and nothing else.")
    if final is not None and spec.output.get("type") != "object":
        given = msgspec.json.decode(raw)
        if not isinstance(given, dict) or "value" not in given:
            return Output(problem=f'{FINAL_OUTPUT} takes {{"value": …}}. Call it with the answer there.')
        raw = msgspec.json.encode(given["value"])
    problem = _misfit(spec.output, raw, codec)
    if problem:
        return Output(problem=problem)
    value = msgspec.json.decode(raw)
    problem = _unstorable(value)
    return Output(problem=problem) if problem else Output(value)


def unfit_object(answer: ModelAnswer) -> dict[str, Any] | None:
    """Return the object in an answer that does not fit, as far as it is one."""
    final = next((call for call in answer.calls if call.name == FINAL_OUTPUT), None)
    raw = cut_json(final.arguments if final is not None else answer.text)
    found = msgspec.json.decode(raw) if raw is not None else None
    return found if isinstance(found, dict) and not _unstorable(found) else None


def _unstorable(value: Any) -> str:
    """Return why no log can have this answer: it is nested too deeply, say. Empty if one can."""
    try:
        values.encode(value, what="Your answer has")
    except WeftError as error:
        return error.message
    return ""


def cut_json(text: str) -> bytes | None:
    """Return the one JSON value in a text, without a fence or prose around it; None if there is none."""
    fenced = _FENCE.search(text)
    for candidate in (text, fenced[1] if fenced else "", *_between_brackets(text)):
        stripped = candidate.strip()
        if stripped and _is_json(stripped):
            return stripped.encode()
    return None


def _between_brackets(text: str) -> list[str]:
    found = []
    for begin, end in (("{", "}"), ("[", "]")):
        first, last = text.find(begin), text.rfind(end)
        if 0 <= first < last:
            found.append((first, text[first : last + 1]))
    return [part for _, part in sorted(found)]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _misfit(schema: dict[str, Any], raw: bytes, codec: Codec[Any] | None) -> str:
    findings = schema_findings(schema, raw)
    if findings:
        listed = "; ".join(f"{found['path'] or '/'}: {found['message']}" for found in findings[:10])
        return f"Your answer does not fit the schema. {listed}"[:PROBLEM_CHARS_MAX]
    if codec is not None:
        try:
            codec.read(raw)
        except Misfit as misfit:
            return misfit.sentence("Your answer has")[:PROBLEM_CHARS_MAX]
    return ""
