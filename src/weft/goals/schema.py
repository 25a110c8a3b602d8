"""The JSON Schema of step documents, for completion and checks in editors.

It is generated from the tables of the loader, so that both agree, and accepts both spellings. It does not check what
only the catalogue can check: scripts, type conflicts and cycles.
"""

from __future__ import annotations

from weft.core.goal.definitions import METADATA
from weft.core.goal.types import WORDS
from weft.documents.editor_schemas import (
    ANY,
    COUNT,
    DIALECT,
    DURATION,
    FLAG,
    PIPELINE,
    PROSE,
    TEXT,
    TEXT_MAP,
    TEXTS,
    WHOLE,
    JsonSchema,
    by_id_or_listed,
    closed_object,
    ref,
    retry_schema,
)
from weft.documents.policies import BACKOFFS
from weft.documents.questions import QUESTION
from weft.goals import facts, policies, ways
from weft.goals.fold import DOCUMENT, STEP, STEP_DOCUMENT
from weft.goals.values import LANGUAGES

_MS: JsonSchema = {"type": ["string", "integer"], "description": "milliseconds, or a duration such as 30s"}


def document_schema() -> JsonSchema:
    """Return the schema of a document: steps by id, a list of steps, or a single step."""
    step = _step_schema()
    fields: JsonSchema = {
        **dict.fromkeys(DOCUMENT, PROSE),
        "weft": {"const": STEP_DOCUMENT.format},
        "steps": by_id_or_listed("step", "listed"),
    }
    return {
        "$schema": DIALECT,
        "title": "Weft steps",
        "anyOf": [
            closed_object(fields, required=["steps"]),
            closed_object({**step, "id": TEXT, "weft": {"const": STEP_DOCUMENT.format}}, required=["id"]),
        ],
        "$defs": {
            "step": closed_object(step),
            "listed": closed_object({**step, "id": TEXT}, required=["id"]),
            **_goal_schema_parts(),
        },
    }


def _by_fact(part: str) -> JsonSchema:
    return {"anyOf": [{"type": "object", "additionalProperties": ref(part)}, {"type": "array", "items": TEXT}]}


def _step_schema() -> JsonSchema:
    return {
        **dict.fromkeys(STEP, ANY),
        "step": TEXT,
        "http": {"anyOf": [TEXT, ref("http")]},
        "script": ref("script"),
        "pipeline": PIPELINE,
        "goal": TEXTS,
        "workflow": {"anyOf": [TEXT, closed_object(dict.fromkeys(ways.WORKFLOW, TEXT), required=["name"])]},
        "agent": TEXT,
        "ask": {"anyOf": [TEXT, ref("ask")]},
        "flow": closed_object({**dict.fromkeys(ways.FLOW, TEXT_MAP), "goals": TEXTS}, required=["goals"]),
        "needs": _by_fact("need"),
        "gives": _by_fact("give"),
        "attributes": {"type": "object", "additionalProperties": ref("attribute")},
        "when": ref("script"),
        "predicate": ref("script"),
        "retry": ref("retry"),
        "timeout": DURATION,
        "queue": TEXT,
        "effect": {"enum": list(policies.EFFECTS)},
        "width": WHOLE,
        "cache": {"anyOf": [FLAG, DURATION]},
        "memoizable": {"anyOf": [FLAG, DURATION]},
        "undo": {"anyOf": [TEXT, closed_object({"step": TEXT, "takes": TEXTS}, required=["step"])]},
        "title": TEXT,
        "name": TEXT,
        "labels": TEXT_MAP,
        "type": {"enum": list(ways.TYPES)},
        "work_config": ref("work_config"),
    }


def _goal_schema_parts() -> JsonSchema:
    kind = {
        "anyOf": [TEXT, {"type": "object"}],
        "description": f"{', '.join(WORDS)}, with [] appended, or JSON Schema",
    }
    collect = {"enum": list(facts.COLLECT)}
    deadline = {"anyOf": [{"const": "wait"}, DURATION]}
    need = {**dict.fromkeys(facts.NEED, ANY), "type": kind, "collect": collect, "match": ref("script")}
    need |= {"mapping": ref("script"), "meta": {"enum": list(METADATA)}}
    need |= {"each": FLAG, "optional": FLAG, "deadline": deadline, "name": TEXT}
    give = {
        **dict.fromkeys(facts.GIVE, ANY),
        "type": kind,
        "name": TEXT,
        "mapping": ref("script"),
        "whole": FLAG,
    }
    attribute = {**dict.fromkeys(facts.ATTRIBUTE, ANY), "role": {"enum": list(facts.ROLES)}, "type": kind}
    attribute |= {"for_each": FLAG, "collect": collect, "match": ref("script")}
    attribute |= {"deadline": {"anyOf": [{"const": "wait"}, _MS]}}
    http = {**dict.fromkeys(ways.HTTP, TEXT), "method": {"enum": list(ways.METHODS)}, "headers": TEXT_MAP}
    http |= {"answer": {"enum": list(ways.ANSWERS)}, "timeout": _MS}
    http |= {"body": {"enum": list(ways.BODIES)}, "webhook": {"enum": list(ways.WEBHOOKS)}}
    ask = {
        **dict.fromkeys(QUESTION, ANY),
        "title": TEXT,
        "of": TEXTS,
        "on_timeout": {
            "anyOf": [
                {"enum": ["fail", "approve", "reject"]},
                closed_object({"escalate": TEXTS}, required=["escalate"]),
            ]
        },
        "four_eyes": FLAG,
        "remind": DURATION,
    }
    config = {**dict.fromkeys(policies.WORK_CONFIG, _MS), "max_retries": {"type": "integer", "minimum": -1}}
    config |= {"backoff_type": {"enum": list(BACKOFFS)}, "parallelism": COUNT}
    language = {"enum": list(LANGUAGES)}
    script = [closed_object({word: TEXT}, required=[word]) for word in LANGUAGES]
    script += [
        closed_object({a: language, b: TEXT}, required=[a, b])
        for a in ("language", "lang")
        for b in ("script", "source")
    ]
    return {
        # These two allow other fields, because JSON Schema may describe the fact instead.
        "need": {"anyOf": [TEXT, {"type": "null"}, {"type": "object", "properties": need}]},
        "give": {"anyOf": [TEXT, {"type": "null"}, {"type": "object", "properties": give}]},
        "attribute": closed_object(attribute, required=["role"]),
        "http": closed_object(http),
        "ask": closed_object(ask),
        "retry": retry_schema(),
        "work_config": closed_object(config),
        "script": {"anyOf": [TEXT, *script], "description": "CEL text, {jpath: …}, {lua: …} or {ale: …}"},
    }
