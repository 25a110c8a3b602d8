"""Rewrite conditions and mappings from the older document formats into Weft's own spelling. Pure.

Malformed input is returned unchanged, and the compiler of conditions reports the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

REFERENCE = "cas://"
_WORDS = {"AND": "all", "OR": "any", "NOT": "not"}
DEPTH_MAX = 20


def fold_condition(raw: Any, depth: int = 0) -> Any:
    """Return a condition in Weft's own spelling: ``{type: cel, expression: x}`` becomes ``x``."""
    if not isinstance(raw, dict) or depth > DEPTH_MAX:
        return raw
    match raw:
        case {"type": "cel", "expression": str(text), **rest} if not rest:
            return text
        case {"type": "schema_validation", **rest} if set(rest) <= {"schema", "schema_ref", "invert"}:
            return _fold_schema(raw, rest)
        case {"type": "jsonpath", "query": query, **rest} if set(rest) <= {"operator", "value", "agg"}:
            renamed = {"is" if key == "operator" else key: value for key, value in rest.items()}
            return {"jsonpath": query, **renamed}
        case {"type": "composite", "operator": str(word), "conditions": list(parts), **rest} if not rest:
            return _fold_composite(raw, word, [fold_condition(part, depth + 1) for part in parts])
        case {"type": "python_sandbox", "code": code, **rest} if not rest:
            return {"python": code}
        case {"all": list(parts)} | {"any": list(parts)} if len(raw) == 1:
            return {key: [fold_condition(part, depth + 1) for part in parts] for key in raw}
        case {"not": part} if len(raw) == 1:
            return {"not": fold_condition(part, depth + 1)}
        case _:
            return raw


def _fold_schema(raw: dict[str, Any], rest: dict[str, Any]) -> Any:
    if not isinstance(rest.get("invert", False), bool) or ("schema" in rest) == ("schema_ref" in rest):
        return raw
    word = "not_schema" if rest.get("invert") else "schema"
    return {word: rest["schema"] if "schema" in rest else rest["schema_ref"]}


def _fold_composite(raw: dict[str, Any], word: str, parts: list[Any]) -> Any:
    if word not in _WORDS or (word == "NOT" and len(parts) != 1):
        return raw
    return {_WORDS[word]: parts[0] if word == "NOT" else parts}


def inline_blobs(condition: Any, resolve: Callable[[str], Any]) -> Any:
    """Return a condition with its blob references replaced by their content, so that a graph is self-contained.

    References that cannot be resolved stay as they are.
    """
    if isinstance(condition, list):
        return [inline_blobs(part, resolve) for part in condition]
    if not isinstance(condition, dict):
        return condition
    found = {
        key: inline_blobs(part, resolve) if key in ("all", "any", "not") else part for key, part in condition.items()
    }
    for key in ("schema", "not_schema", "python", "code_ref"):
        reference = found.get(key)
        if isinstance(reference, str) and reference.startswith(REFERENCE):
            content = _fetch_reference(reference, resolve, as_json=key in ("schema", "not_schema"))
            if content is not None:
                found["code" if key == "code_ref" else key] = content
                found.pop("code_ref", None)
    return fold_condition(found)


def blob_exists(reference: str, resolve: Callable[[str], Any]) -> bool:
    """Return whether a blob is in the store. Returns True if the store fails, because the node reads the blob later."""
    try:
        return resolve(reference) is not None
    except Exception:  # noqa: BLE001  # a store may raise anything
        return True


def _fetch_reference(reference: str, resolve: Callable[[str], Any], *, as_json: bool) -> Any:
    try:
        content = resolve(reference)
        if as_json and isinstance(content, bytes | str):
            return msgspec.json.decode(content)
        return content.decode() if isinstance(content, bytes) else content
    except Exception:  # noqa: BLE001  # a store may raise anything; the compiler reports the missing blob
        return None


def fold_mapping(raw: Any) -> Any:
    """Return a value of ``input_mapping`` or ``output_mapping`` as a template. A string there is an expression."""
    return f"${{{raw}}}" if isinstance(raw, str) else raw
