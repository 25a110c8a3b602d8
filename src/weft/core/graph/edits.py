"""Edit a fork of a graph run before it goes on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Raw

from weft.core import commands as c
from weft.core import events as e
from weft.core import values
from weft.core.graph.model import GraphModel, HttpWork, PipelineWork, ScriptWork, StepWork, TypeWork
from weft.core.graph.tokens import GraphState, Token
from weft.core.run.composites import has_marks, leaf
from weft.core.run.env import Env
from weft.core.run.fork import bad_edit, never_reached, settable_now_hint
from weft.core.run.places import is_at

_TASKS = (StepWork, HttpWork, ScriptWork, PipelineWork, TypeWork)
"""The work of nodes whose result can be set."""


def decide_edit(graph: GraphModel, state: GraphState, command: c.EditRun, env: Env) -> Sequence[e.AnyEvent]:
    """Return the edits of a fork. Raises Refused, with all that is wrong."""
    wrong = [problem for place in command.results if (problem := _result_error(graph, state, place, command))]
    settable = (name for name in graph.nodes if not _result_error(graph, state, name, command))
    places = settable_now_hint(settable) if wrong else ""
    if command.given:
        wrong.append("a graph run has no given facts; --input changes its input")
    declared = declared_fields(graph)
    fields = state_fields(graph)
    unknown = [name for name in command.state if name not in fields]
    wrong += [f"the state of {graph.name} has no field {name[:60]}" for name in unknown]
    wrong += _fields_overwritten_next(graph, state, command)
    wrong += [f"state.{name}: {problem}" for name, problem in schema_errors(declared, command.state, env).items()]
    if wrong:
        raise bad_edit(wrong, hint=_edit_hint(command, fields if unknown else (), places))
    edited = e.RunEdited(input=command.input, results=command.results, state=command.state, by=command.by)
    return (edited,)


def declared_fields(graph: GraphModel) -> dict[str, Any]:
    """Return the schemas of the fields that a graph declares for its state."""
    return (graph.state or {}).get("properties") or {}


def state_fields(graph: GraphModel) -> set[str]:
    """Return the fields of the state: those that are declared, and those that nodes write."""
    targets = [save.to for node in graph.nodes.values() for save in node.save]
    targets += [node.fan_in.merge.into for node in graph.nodes.values() if node.fan_in and node.fan_in.merge]
    return {*declared_fields(graph), *(target.path[0] for target in targets if target.scope == "state")}


def _fields_overwritten_next(graph: GraphModel, state: GraphState, command: c.EditRun) -> list[str]:
    """Return which fields would be overwritten at once, by a node that has ended and saves its result next."""
    return [
        f"{token.node} has ended at this point and saves state.{save.to.path[0]} next, over what is set"
        for token in state.tokens.values()
        if token.mode == "routing" and not token.failure and token.node in graph.nodes
        for save in graph.nodes[token.node].save
        if save.to.scope == "state" and save.to.path[0] in command.state
    ]


def _edit_hint(command: c.EditRun, fields: Collection[str], places: str) -> str:
    lines = []
    if fields:
        lines.append(f"The fields of the state are {', '.join(sorted(fields))}.")
    if places:
        lines.append(places)
    if command.results:
        lines.append("--before NODE is a point at which the result of NODE can be set.")
    if command.state and not command.ahead:
        lines.append("--before NODE is a point at which everything that comes to NODE has been saved.")
    return " ".join(lines)


def schema_errors(declared: Mapping[str, Any], given: Mapping[str, Raw], env: Env) -> dict[str, str]:
    """Return why values do not fit the schemas of their fields, by field."""
    found = {}
    for name, raw in given.items():
        schema, plain = declared.get(name), values.inline_json(bytes(raw))
        problem = env.check(schema, plain) if isinstance(schema, dict) and plain is not None else None
        if problem is not None:
            found[name] = problem
    return found


def _result_error(graph: GraphModel, state: GraphState, place: str, command: c.EditRun) -> str:
    """Return why the result of a node cannot be set here, or nothing. Its token must not have been routed yet."""
    name = place.partition("/")[0]
    node = graph.nodes.get(name)
    if node is None:
        return f"{graph.name} has no node {name[:60]}"
    if not isinstance(node.work, _TASKS):
        return f"{name} performs no step; only the result of a step can be set"
    if any(is_at(f"{token.node}/{token.id}", place) for token in state.tokens.values()):
        return ""
    if command.ahead and is_at(place, command.ahead.partition("/")[0]):
        return ""
    if state.executed.get(name):
        return f"{name} has been routed at this point"
    return never_reached(place, command) if place != name else ""


def evolve_edited(state: GraphState, event: e.RunEdited) -> None:
    """Change the state, and the results of tokens that are to be routed or have failed.

    Work whose result is set is not a repetition: the result that it had in the original must not be kept.
    """
    for name, raw in event.state.items():
        value = leaf(raw)
        state.merging.pop(name, None)
        state.data[name] = value
        state.marked = state.marked or has_marks(value)
    for place, result in event.results.items():
        state.repeated.pop(place.partition("/")[0], None)
        for token in state.tokens.values():
            if not is_at(f"{token.node}/{token.id}", place):
                continue
            token.earlier = None
            if token.mode in ("routing", "failing"):
                _set_output(state, token, result)


def _set_output(state: GraphState, token: Token, result: Raw) -> None:
    if token.mode == "failing":
        if token.frame or token.slot:
            return
        state.executed[token.node] = state.executed.get(token.node, 0) + 1
    token.mode, token.output, token.failure = "routing", result, None
