"""The JSON Schema of graph documents, for completion and checks in editors.

It is generated from the tables of the loader, so that both agree, and accepts every spelling. It does not check what
only the compiler can check: names of nodes, expressions and scopes.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.documents.editor_schemas import (
    ANY,
    DIALECT,
    DURATION,
    FLAG,
    MAP,
    PIPELINE,
    TEXT,
    TEXTS,
    WHOLE,
    JsonSchema,
    by_id_or_listed,
    closed_object,
    ref,
    retry_schema,
)
from weft.graphs import agents, policies, routes, work
from weft.graphs.data import HOW
from weft.graphs.fold import DOCUMENT, FAN_OUT, GRAPH_DOCUMENT, NODE, NODE_IDS
from weft.graphs.joins import EARLY, LATE

_CONDITION: JsonSchema = {"type": ["string", "object", "boolean"], "description": "CEL, or a condition object"}
_TEMPLATE: JsonSchema = {"description": "any JSON; ${CEL} in its texts is filled in"}


def document_schema(types: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of a document. ``types`` are the registered node types, which nodes may use by name."""
    fields_of_node = _node_fields(types)
    node = closed_object(fields_of_node)
    listed = closed_object({**fields_of_node, **dict.fromkeys(NODE_IDS, TEXT)})
    fields: JsonSchema = {
        **dict.fromkeys(DOCUMENT, MAP),
        "weft": {"const": GRAPH_DOCUMENT.format},
        "name": TEXT,
        "description": {"type": "string"},
        "start": TEXTS,
        "nodes": by_id_or_listed("node", "listed", least=1),
        "limits": {"$ref": "#/$defs/limits"},
        "changes": closed_object({"review": TEXTS}),
        "transitions": {"type": "array", "items": {"$ref": "#/$defs/transition"}},
        "edges": {"type": "array", "items": {"$ref": "#/$defs/transition"}},
    }
    return {
        "$schema": DIALECT,
        "title": "Weft graph",
        **closed_object(fields, required=["nodes"]),
        "$defs": {"node": node, "listed": listed, **_graph_schema_parts()},
    }


def _node_fields(types: Iterable[str]) -> JsonSchema:
    return {
        **dict.fromkeys(types, _TEMPLATE),
        **dict.fromkeys(NODE, ANY),
        **_work_fields(),
        "name": TEXT,
        "description": {"type": "string"},
        "with": _TEMPLATE,
        "input_mapping": MAP,
        "save": {"type": "object", "propertyNames": {"pattern": r"^(state|branch)\."}},
        "output_mapping": MAP,
        "retry": ref("retry"),
        "timeout": DURATION,
        "queue": TEXT,
        "limits": ref("limits"),
        "undo": ref("undo"),
        "compensator": ref("undo"),
        "on_failure": {"enum": ["propagate", "route"]},
        "next": {
            "anyOf": [
                TEXT,
                ref("entry"),
                {"type": "array", "items": {"anyOf": [TEXT, ref("entry")]}},
            ]
        },
        "catch": {
            "anyOf": [
                TEXT,
                ref("caught"),
                {"type": "array", "items": {"anyOf": [TEXT, ref("caught")]}},
            ]
        },
        "branch": ref("branch"),
        "choose": closed_object({"of": TEXTS, "at_most": WHOLE, "otherwise": TEXTS}, required=["of"]),
        "dependents": TEXTS,
        "dependencies": TEXTS,
        "fan_out": {"enum": list(FAN_OUT)},
        "on_no_match": {"enum": ["end", "fail"]},
        "rejection_path": TEXTS,
        "repeat": ref("repeat"),
        "loop": ref("loop"),
        "join": {"anyOf": [{"enum": ["all", "any", "edges"]}, ref("joining")]},
        "fan_in": {"anyOf": [{"enum": ["all", "any"]}, closed_object({"m_of_n": WHOLE}, required=["m_of_n"])]},
        "wait_for_all": FLAG,
        "of": TEXT,
        "joins_node": TEXT,
        "merge": ref("merge"),
        "late": {"enum": list(LATE)},
        "on_early_complete": {"enum": list(EARLY)},
        "node_capabilities": closed_object(
            {"can_emit_to": TEXTS, "max_fanout": WHOLE, "requires_approval": FLAG, "allowed_tools": TEXTS}
        ),
    }


def _work_fields() -> JsonSchema:
    ask = {**dict.fromkeys(work.ASK, ANY), "title": TEXT, "of": TEXTS, "timeout": DURATION}
    ask |= {"four_eyes": FLAG, "remind": DURATION}
    call = closed_object(dict.fromkeys(work.WORKFLOW, ANY))
    agent = {**dict.fromkeys(agents.AGENT, ANY), "model": TEXT, "system": TEXT, "prompt": TEXT, "tools": TEXTS}
    agent |= {"turns": WHOLE, "approvers": TEXTS, "options": MAP, "budget": MAP}
    return {
        "step": TEXT,
        "http": closed_object({**dict.fromkeys(work.HTTP, ANY), "url": TEXT, "method": TEXT}, required=["url"]),
        "script": {**closed_object(dict.fromkeys(work.SCRIPT, TEXT)), "minProperties": 1},
        "pipeline": PIPELINE,
        "workflow": {"anyOf": [TEXT, call]},
        "workflow_call": {"anyOf": [TEXT, call]},
        "goal": TEXTS,
        "ask": closed_object(ask),
        "human": closed_object({**dict.fromkeys(work.HUMAN, ANY), **ask}),
        "agent": {"anyOf": [TEXT, closed_object(agent, required=["model"])]},
        "wait": DURATION,
        "receive": {
            "anyOf": [
                TEXT,
                closed_object({"name": TEXT, "type": ANY, "timeout": DURATION}, required=["name"]),
            ]
        },
        "answer": closed_object({"to": TEXT, "value": ANY}, required=["to"]),
        "pass": {"const": True},
        "type": TEXT,
        "config_ref": {"anyOf": [TEXT, closed_object(dict.fromkeys(work.REFERENCE, TEXT), required=["cas_ref"])]},
        "agent_config": MAP,
        "human_config": closed_object(dict.fromkeys(work.HUMAN, ANY)),
        "inherit_artifacts": FLAG,
    }


def _graph_schema_parts() -> JsonSchema:
    percent = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$"}
    entry = {
        **dict.fromkeys(routes.ENTRY, ANY),
        "when": _CONDITION,
        "condition": _CONDITION,
        "to": TEXTS,
        "for_each": {"type": "string", "pattern": r"^\s*\$\{.*\}\s*$"},
        "foreach": closed_object(dict.fromkeys(routes.FOREACH, TEXT), required=["collection"]),
        "as": TEXT,
        "width": WHOLE,
        "copies": WHOLE,
        "spawn": WHOLE,
    }
    undo = {
        **dict.fromkeys(policies.UNDO, TEXT),
        "with": _TEMPLATE,
        "retry": ref("retry"),
        "timeout": DURATION,
    }
    path = {"type": "string", "minLength": 1}
    merge = {"how": {"enum": list(HOW)}, "strategy": {"enum": list(HOW)}}
    return {
        "entry": closed_object(entry, required=["to"]),
        "transition": closed_object(
            {**entry, "from": TEXT, "priority": {"type": "integer"}, "id": TEXT, "ref": TEXT},
            required=["from", "to"],
        ),
        "caught": closed_object({"error": TEXTS, "to": TEXTS}, required=["to"]),
        "repeat": closed_object(
            {"while": _CONDITION, "until": _CONDITION, "at_most": WHOLE, "back_to": TEXT, "exhausted": TEXTS},
            required=["at_most"],
        ),
        "loop": closed_object({
            **dict.fromkeys(routes.LOOP, TEXTS), "enabled": FLAG, "condition": _CONDITION, "max_iterations": WHOLE,
        }),
        "branch": closed_object({
            **dict.fromkeys(routes.BRANCH, TEXTS), "enabled": FLAG, "type": {"enum": ["conditional", "agent_driven"]},
            "rules": {"type": "array", "items": closed_object({"condition": _CONDITION, "next_nodes": TEXTS})},
        }),
        "joining": closed_object({
            "wait": {"enum": ["all", "any", "edges"]}, "at_least": {"anyOf": [WHOLE, percent]}, "of": TEXT,
            "timeout": DURATION, "on_timeout": {"enum": ["fail", "proceed"]},
        }),
        "merge": closed_object({**dict.fromkeys(("from", "into", "source", "target"), path), **merge}),
        "retry": retry_schema(),
        "limits": closed_object({
            **dict.fromkeys(policies.LIMITS, WHOLE), "time": DURATION, "deadline_s": DURATION, "budget": MAP,
        }),
        "undo": {"anyOf": [TEXT, closed_object({**undo, "timeout_sec": DURATION})]},
    }  # fmt: skip
