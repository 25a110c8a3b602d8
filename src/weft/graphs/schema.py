"""JSON Schema of the graph document, for editors: completion, and most mistakes seen while typing.

Made from the same tables that the loader reads by, so that the two cannot part. It knows every accepted spelling; what
only the compiler can know (names of nodes, expressions, scopes) is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.graphs import policies, routes, work
from weft.graphs.data import HOW
from weft.graphs.fold import DOCUMENT, FAN_OUT, NODE, NODE_IDS
from weft.graphs.joins import EARLY, LATE

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "minLength": 1}
_ANY: Schema = {}
_FLAG: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer", "minimum": 1}
_DURATION: Schema = {"type": ["string", "number"], "description": "30s, 1h30m, 2d, ISO 8601, or seconds"}
_MAP: Schema = {"type": "object"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_CONDITION: Schema = {"type": ["string", "object", "boolean"], "description": "CEL, or a condition object"}
_TEMPLATE: Schema = {"description": "any JSON; ${CEL} in its texts is filled in"}


def document_schema(types: Iterable[str] = ()) -> Schema:
    """The schema of a document; `types` are registered node types, which nodes may use by name."""
    fields_of_node = _node_fields(types)
    node = _closed(fields_of_node)
    listed = _closed({**fields_of_node, **dict.fromkeys(NODE_IDS, _TEXT)})
    fields: Schema = {
        **dict.fromkeys(DOCUMENT, _MAP),
        "weft": {"const": "graph/1"},
        "name": _TEXT,
        "description": {"type": "string"},
        "start": _TEXTS,
        "nodes": {
            "anyOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}, "minProperties": 1},
                {"type": "array", "items": {"$ref": "#/$defs/listed"}, "minItems": 1},
            ]
        },
        "limits": {"$ref": "#/$defs/limits"},
        "transitions": {"type": "array", "items": {"$ref": "#/$defs/transition"}},
        "edges": {"type": "array", "items": {"$ref": "#/$defs/transition"}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weft graph",
        **_closed(fields, required=["nodes"]),
        "$defs": {"node": node, "listed": listed, **_parts()},
    }


def _closed(fields: Schema, *, required: Iterable[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _node_fields(types: Iterable[str]) -> Schema:
    return {
        **dict.fromkeys(types, _TEMPLATE),
        **dict.fromkeys(NODE, _ANY),
        **_work_fields(),
        "name": _TEXT,
        "description": {"type": "string"},
        "with": _TEMPLATE,
        "input_mapping": _MAP,
        "save": {"type": "object", "propertyNames": {"pattern": r"^(state|branch)\."}},
        "output_mapping": _MAP,
        "retry": _ref("retry"),
        "timeout": _DURATION,
        "queue": _TEXT,
        "limits": _ref("limits"),
        "undo": _ref("undo"),
        "compensator": _ref("undo"),
        "on_failure": {"enum": ["propagate", "route"]},
        "next": {"anyOf": [_TEXT, _ref("entry"), {"type": "array", "items": {"anyOf": [_TEXT, _ref("entry")]}}]},
        "catch": {"anyOf": [_TEXT, _ref("caught"), {"type": "array", "items": {"anyOf": [_TEXT, _ref("caught")]}}]},
        "branch": _ref("branch"),
        "dependents": _TEXTS,
        "dependencies": _TEXTS,
        "fan_out": {"enum": list(FAN_OUT)},
        "on_no_match": {"enum": ["end", "fail"]},
        "rejection_path": _TEXTS,
        "repeat": _ref("repeat"),
        "loop": _ref("loop"),
        "join": {"anyOf": [{"enum": ["all", "any", "edges"]}, _ref("joining")]},
        "fan_in": {"anyOf": [{"enum": ["all", "any"]}, _closed({"m_of_n": _WHOLE}, required=["m_of_n"])]},
        "wait_for_all": _FLAG,
        "of": _TEXT,
        "joins_node": _TEXT,
        "merge": _ref("merge"),
        "late": {"enum": list(LATE)},
        "on_early_complete": {"enum": list(EARLY)},
    }


def _work_fields() -> Schema:
    ask = {**dict.fromkeys(work.ASK, _ANY), "title": _TEXT, "of": _TEXTS, "timeout": _DURATION}
    ask |= {"four_eyes": _FLAG, "remind": _DURATION}
    call = _closed(dict.fromkeys(work.WORKFLOW, _ANY))
    return {
        "step": _TEXT,
        "http": _closed({**dict.fromkeys(work.HTTP, _ANY), "url": _TEXT, "method": _TEXT}, required=["url"]),
        "script": {**_closed(dict.fromkeys(work.SCRIPT, _TEXT)), "minProperties": 1},
        "workflow": {"anyOf": [_TEXT, call]},
        "workflow_call": {"anyOf": [_TEXT, call]},
        "goal": _TEXTS,
        "ask": _closed(ask),
        "human": _closed({**dict.fromkeys(work.HUMAN, _ANY), **ask}),
        "agent": {"type": ["string", "object"]},
        "wait": _DURATION,
        "receive": {"anyOf": [_TEXT, _closed({"name": _TEXT, "type": _ANY, "timeout": _DURATION}, required=["name"])]},
        "answer": _closed({"to": _TEXT, "value": _ANY}, required=["to"]),
        "pass": {"const": True},
        "type": _TEXT,
        "config_ref": {"anyOf": [_TEXT, _closed(dict.fromkeys(work.REFERENCE, _TEXT), required=["cas_ref"])]},
        "agent_config": _MAP,
        "human_config": _closed(dict.fromkeys(work.HUMAN, _ANY)),
        "inherit_artifacts": _FLAG,
    }


def _parts() -> Schema:
    percent = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$"}
    entry = {
        **dict.fromkeys(routes.ENTRY, _ANY),
        "when": _CONDITION,
        "condition": _CONDITION,
        "to": _TEXTS,
        "for_each": {"type": "string", "pattern": r"^\s*\$\{.*\}\s*$"},
        "foreach": _closed(dict.fromkeys(routes.FOREACH, _TEXT), required=["collection"]),
        "as": _TEXT,
        "width": _WHOLE,
        "copies": _WHOLE,
        "spawn": _WHOLE,
    }
    retry = {**dict.fromkeys(policies.RETRY, _WHOLE), "backoff": {"enum": list(policies.BACKOFFS)}}
    retry |= {"delay": _DURATION, "max_delay": _DURATION, "backoff_ms": {"type": "integer", "minimum": 0}}
    undo = {**dict.fromkeys(policies.UNDO, _TEXT), "with": _TEMPLATE, "retry": _ref("retry"), "timeout": _DURATION}
    path = {"type": "string", "minLength": 1}
    merge = {"how": {"enum": list(HOW)}, "strategy": {"enum": list(HOW)}}
    return {
        "entry": _closed(entry, required=["to"]),
        "transition": _closed(
            {**entry, "from": _TEXT, "priority": {"type": "integer"}, "id": _TEXT, "ref": _TEXT},
            required=["from", "to"],
        ),
        "caught": _closed({"error": _TEXTS, "to": _TEXTS}, required=["to"]),
        "repeat": _closed(
            {"while": _CONDITION, "until": _CONDITION, "at_most": _WHOLE, "back_to": _TEXT, "exhausted": _TEXTS},
            required=["at_most"],
        ),
        "loop": _closed({
            **dict.fromkeys(routes.LOOP, _TEXTS), "enabled": _FLAG, "condition": _CONDITION, "max_iterations": _WHOLE,
        }),
        "branch": _closed({
            **dict.fromkeys(routes.BRANCH, _TEXTS), "enabled": _FLAG, "type": {"enum": ["conditional", "agent_driven"]},
            "rules": {"type": "array", "items": _closed({"condition": _CONDITION, "next_nodes": _TEXTS})},
        }),
        "joining": _closed({
            "wait": {"enum": ["all", "any", "edges"]}, "at_least": {"anyOf": [_WHOLE, percent]}, "of": _TEXT,
            "timeout": _DURATION, "on_timeout": {"enum": ["fail", "proceed"]},
        }),
        "merge": _closed({**dict.fromkeys(("from", "into", "source", "target"), path), **merge}),
        "retry": {"anyOf": [_WHOLE, _closed(retry)]},
        "limits": _closed({
            **dict.fromkeys(policies.LIMITS, _WHOLE), "time": _DURATION, "deadline_s": _DURATION,
        }),
        "undo": {"anyOf": [_TEXT, _closed({**undo, "timeout_sec": _DURATION})]},
    }  # fmt: skip
