"""Read the answer to a goal's HTTP step: its outputs, or an envelope ``{success, outputs, error}``. Pure."""

from __future__ import annotations

from typing import Any

from weft.steps.http.content import media_type, parse_json
from weft.steps.http.failures import HttpFailed, NotAnAnswer
from weft.steps.http.outcome import one_line, problem_text

_ENVELOPE = frozenset({"success", "outputs", "error"})


def read_named_outputs(body: bytes, content_type: str, *, what: str, bare: bool = False) -> dict[str, Any]:
    """Read the outputs by name. An empty body has no outputs. ``what`` begins the message of an error.

    With ``bare``, the object contains the outputs, even if it looks like an envelope.

    Raises:
        NotAnAnswer: the body is not a JSON object.
        HttpFailed: the body reports a failure: ``success: false``, or a problem document.
    """
    if not body.strip():
        return {}
    try:
        found = parse_json(body, what)
    except HttpFailed as error:
        raise NotAnAnswer(error.message) from error
    if not isinstance(found, dict):
        raise NotAnAnswer(f"{what} answered with {_kind(found)}, but outputs must be an object.")
    if media_type(content_type) == "application/problem+json":
        raise HttpFailed(f"{what} failed: {one_line(problem_text(found)) or 'it gave no reason'}.")
    if not bare and isinstance(found.get("success"), bool) and found.keys() <= _ENVELOPE:
        return _open_envelope(found, what)
    return found


def _open_envelope(envelope: dict[str, Any], what: str) -> dict[str, Any]:
    if not envelope["success"]:
        error = envelope.get("error")
        reason = error if isinstance(error, str) else problem_text(error)
        raise HttpFailed(f"{what} failed: {one_line(reason) or 'it gave no reason'}.")
    outputs = envelope.get("outputs")
    if outputs is None:
        return {}
    if not isinstance(outputs, dict):
        raise NotAnAnswer(f"{what} answered with {_kind(outputs)} as outputs, but outputs must be an object.")
    return outputs


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a number"
