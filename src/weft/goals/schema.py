"""JSON Schema of the document of steps, for editors: completion, and most mistakes seen while typing.

Made from the same tables that the loader reads by, so that the two cannot part. It knows both spellings; what only the
catalogue can know (scripts, conflicts of types, circles) is not in it.
"""

from __future__ import annotations

from typing import Any

from weft.core.goal.definitions import METADATA
from weft.core.goal.types import WORDS
from weft.goals import facts, policies, ways
from weft.goals.fold import DOCUMENT, FORMAT, STEP
from weft.goals.words import LANGUAGES
from weft.graphs.policies import BACKOFFS, RETRY

Schema = dict[str, Any]

_ANY: Schema = {}
_PROSE: Schema = {"type": "string"}
_TEXT: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer", "minimum": 1}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_DURATION: Schema = {"type": ["string", "number"], "description": "30s, 1h30m, 2d, ISO 8601, or seconds"}
_MS: Schema = {"type": ["string", "integer"], "description": "milliseconds, or a duration such as 30s"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_TEXT_MAP: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def document_schema() -> Schema:
    """The schema of a document: steps by id, a list of them, or one step by itself."""
    step = _step()
    fields: Schema = {
        **dict.fromkeys(DOCUMENT, _PROSE),
        "weft": {"const": FORMAT},
        "steps": {
            "anyOf": [
                {"type": "object", "additionalProperties": _ref("step")},
                {"type": "array", "items": _ref("listed")},
            ]
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weft steps",
        "anyOf": [_closed(fields, "steps"), _closed({**step, "id": _TEXT, "weft": {"const": FORMAT}}, "id")],
        "$defs": {"step": _closed(step), "listed": _closed({**step, "id": _TEXT}, "id"), **_parts()},
    }


def _closed(fields: Schema, *required: str) -> Schema:
    schema: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _by_fact(part: str) -> Schema:
    return {"anyOf": [{"type": "object", "additionalProperties": _ref(part)}, {"type": "array", "items": _TEXT}]}


def _step() -> Schema:
    return {
        **dict.fromkeys(STEP, _ANY),
        "step": _TEXT,
        "http": {"anyOf": [_TEXT, _ref("http")]},
        "script": _ref("script"),
        "goal": _TEXTS,
        "workflow": {"anyOf": [_TEXT, _closed(dict.fromkeys(ways.WORKFLOW, _TEXT), "name")]},
        "ask": {"anyOf": [_TEXT, _ref("ask")]},
        "flow": _closed({**dict.fromkeys(ways.FLOW, _TEXT_MAP), "goals": _TEXTS}, "goals"),
        "needs": _by_fact("need"),
        "gives": _by_fact("give"),
        "attributes": {"type": "object", "additionalProperties": _ref("attribute")},
        "when": _ref("script"),
        "predicate": _ref("script"),
        "retry": {"anyOf": [_WHOLE, _ref("retry")]},
        "timeout": _DURATION,
        "queue": _TEXT,
        "effect": {"enum": list(policies.EFFECTS)},
        "width": _WHOLE,
        "cache": {"anyOf": [_FLAG, _DURATION]},
        "memoizable": {"anyOf": [_FLAG, _DURATION]},
        "undo": {"anyOf": [_TEXT, _closed({"step": _TEXT, "takes": _TEXTS}, "step")]},
        "title": _TEXT,
        "name": _TEXT,
        "labels": _TEXT_MAP,
        "type": {"enum": list(ways.TYPES)},
        "work_config": _ref("work_config"),
    }


def _parts() -> Schema:
    kind = {"anyOf": [_TEXT, {"type": "object"}], "description": f"{', '.join(WORDS)}, with [] behind, or JSON Schema"}
    collect = {"enum": list(facts.COLLECT)}
    deadline = {"anyOf": [{"const": "wait"}, _DURATION]}
    need = {**dict.fromkeys(facts.NEED, _ANY), "type": kind, "collect": collect, "match": _ref("script")}
    need |= {"mapping": _ref("script"), "meta": {"enum": list(METADATA)}}
    need |= {"each": _FLAG, "optional": _FLAG, "deadline": deadline, "name": _TEXT}
    give = {**dict.fromkeys(facts.GIVE, _ANY), "type": kind, "name": _TEXT, "mapping": _ref("script"), "whole": _FLAG}
    attribute = {**dict.fromkeys(facts.ATTRIBUTE, _ANY), "role": {"enum": list(facts.ROLES)}, "type": kind}
    attribute |= {"for_each": _FLAG, "collect": collect, "match": _ref("script")}
    attribute |= {"deadline": {"anyOf": [{"const": "wait"}, _MS]}}
    http = {**dict.fromkeys(ways.HTTP, _TEXT), "method": {"enum": list(ways.METHODS)}, "headers": _TEXT_MAP}
    http |= {"answer": {"enum": list(ways.ANSWERS)}, "timeout": _MS}
    http |= {"body": {"enum": list(ways.BODIES)}, "webhook": {"enum": list(ways.WEBHOOKS)}}
    ask = {
        **dict.fromkeys(ways.ASK, _ANY),
        "title": _TEXT,
        "of": _TEXTS,
        "on_timeout": {"anyOf": [{"enum": ["fail", "approve", "reject"]}, _closed({"escalate": _TEXTS}, "escalate")]},
        "four_eyes": _FLAG,
        "remind": _DURATION,
    }
    retry = {**dict.fromkeys(RETRY, _WHOLE), "backoff": {"enum": list(BACKOFFS)}}
    retry |= {"delay": _DURATION, "max_delay": _DURATION, "backoff_ms": _COUNT}
    config = {**dict.fromkeys(policies.WORK_CONFIG, _MS), "max_retries": {"type": "integer", "minimum": -1}}
    config |= {"backoff_type": {"enum": list(BACKOFFS)}, "parallelism": _COUNT}
    language = {"enum": list(LANGUAGES)}
    script = [_closed({word: _TEXT}, word) for word in LANGUAGES]
    script += [_closed({a: language, b: _TEXT}, a, b) for a in ("language", "lang") for b in ("script", "source")]
    return {
        # A mapping may also be JSON Schema of the fact, so other fields are allowed in these two.
        "need": {"anyOf": [_TEXT, {"type": "null"}, {"type": "object", "properties": need}]},
        "give": {"anyOf": [_TEXT, {"type": "null"}, {"type": "object", "properties": give}]},
        "attribute": _closed(attribute, "role"),
        "http": _closed(http),
        "ask": _closed(ask),
        "retry": _closed(retry),
        "work_config": _closed(config),
        "script": {"anyOf": [_TEXT, *script], "description": "CEL text, {jpath: …}, {lua: …} or {ale: …}"},
    }
