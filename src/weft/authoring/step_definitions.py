"""Define steps, workflows and graphs for the catalogue of goals. Parameters become needs, ``gives`` outputs."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.authoring.graphs import Graph
from weft.authoring.needs import Const, Each, Fact, When
from weft.authoring.steps import Step
from weft.authoring.workflows import Workflow
from weft.core import values
from weft.core.durations import duration_ms
from weft.core.goal.definitions import Cache, Give, Need, Script, StepDef, StepWay, WorkflowWay, agent_gives
from weft.core.goal.types import Type, normalize
from weft.errors import BadValue, LimitExceeded, UsageError
from weft.steps.signature import Parameter


def step_definition(step: Step[Any, Any]) -> StepDef:
    """Return the catalogue's definition of a Python step."""
    options = step.planning
    return StepDef(
        id=step.body.name,
        way=StepWay(step.body.name),
        needs=_needs(step.fn, step.signature.parameters),
        gives=_gives(step.body.name, options.gives, step.signature.result.schema()),
        when=_script(options.when),
        policy=step.policy,
        width=options.width,
        cache=Cache(options.cache_ms) if options.cache_ms is not None else None,
        undo=step.undo_plan,
        labels=dict(options.labels),
    )


def workflow_definition(workflow: Workflow[Any, Any]) -> StepDef:
    """Return the catalogue's definition of a code workflow: a step that starts a child run."""
    needs = _needs(workflow.fn, workflow.signature.parameters)
    if workflow.is_agent:
        # Its parameters are needs, and fields of its answer are outputs.
        names = (workflow.gives,) if isinstance(workflow.gives, str) else workflow.gives
        needs = {fact: need for fact, need in needs.items() if need.role == "required"}
        gives = agent_gives({fact: Give() for fact in names})
    else:
        gives = _gives(workflow.name, workflow.gives, workflow.signature.result.schema())
    return StepDef(id=workflow.name, way=WorkflowWay(workflow.name), needs=needs, gives=gives)


def graph_step_definition(graph: Graph) -> StepDef:
    """Return the catalogue's definition of a graph: a step that starts a child run. Its input fields are needs."""
    schema = graph.loaded.graph.input or {}
    required = set(schema.get("required") or ())
    needs = {
        name: Need(role="required" if name in required else "optional", type=_type(dict(part)))
        for name, part in (schema.get("properties") or {}).items()
    }
    return StepDef(
        id=graph.name,
        way=WorkflowWay(graph.name),
        needs=needs,
        gives={fact: Give(type=_field(graph.loaded.graph.result or {}, fact)) for fact in graph.gives},
    )


def _needs(fn: Any, parameters: Sequence[Parameter]) -> dict[str, Need]:
    try:
        hints = typing.get_type_hints(fn, include_extras=True)
    except Exception:  # noqa: BLE001 - annotations that cannot be resolved add nothing to the signature
        hints = {}
    needs: dict[str, Need] = {}
    for parameter in parameters:
        fact, need = _need(parameter, getattr(hints.get(parameter.name), "__metadata__", ()))
        if fact in needs:
            raise UsageError(
                f"Two parameters of {getattr(fn, '__qualname__', fn)} read the fact {fact}.",
                hint="Only one parameter of a step can read a fact.",
            )
        needs[fact] = need
    return needs


def _need(parameter: Parameter, annotations: Sequence[Any]) -> tuple[str, Need]:
    fact = next((item for item in annotations if isinstance(item, Fact)), Fact())
    each = next((item for item in annotations if isinstance(item, Each)), None)
    const = next((item for item in annotations if isinstance(item, Const)), None)
    name = each.name if each is not None else fact.name or parameter.name
    inner = parameter.name if parameter.name != name else ""
    kind = _type(dict(parameter.codec.schema()))
    if const is not None:
        return name, Need(role="const", type=kind, name=inner, value=const.value)
    if each is not None:
        kind = normalize(f"{kind}[]") if isinstance(kind, str) and kind != "any" else "array"
    elif fact.collect in ("some", "all"):
        kind = _item_type(kind)
    return name, Need(
        role="required" if parameter.required else "optional",
        type=None if kind == "any" else kind,
        name=inner,
        collect=fact.collect,
        match=_script(fact.match),
        each=each is not None,
        default=_default(parameter),
        deadline=_deadline(fact),
    )


def _default(parameter: Parameter) -> Any:
    """Return the default as JSON, or ``UNSET`` if JSON cannot represent it. The function then applies it itself."""
    if parameter.required:
        return msgspec.UNSET
    with contextlib.suppress(BadValue, LimitExceeded):
        return values.decode(values.encode(parameter.default))
    return msgspec.UNSET


def _deadline(fact: Fact) -> Any:
    if fact.deadline is None or fact.deadline == "wait":
        return fact.deadline
    return duration_ms(fact.deadline)


def _gives(name: str, gives: str | Sequence[str], schema: Mapping[str, Any]) -> dict[str, Give]:
    """Read ``gives``. A string names the whole result as one fact; a tuple names fields of the result."""
    if isinstance(gives, str):
        return {gives: Give(type=_type(dict(schema)), whole=True)}
    fields = _resolved(schema).get("properties") or {}
    unknown = [fact for fact in gives if fields and fact not in fields]
    if unknown:
        raise UsageError(
            f"gives= of {name} names {', '.join(unknown)}, which its result does not have.",
            hint=f"The fields of the result are {', '.join(fields)}.",
        )
    return {fact: Give(type=_field(schema, fact)) for fact in gives}


def _field(schema: Mapping[str, Any], name: str) -> Type:
    part = (_resolved(schema).get("properties") or {}).get(name)
    if not isinstance(part, dict):
        return None
    defs = schema.get("$defs")
    return _type({**part, "$defs": defs} if defs and "$ref" in str(part) else part)


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    definition = (schema.get("$defs") or {}).get(name)
    return definition if isinstance(definition, dict) else schema


def _type(schema: dict[str, Any]) -> Type:
    """Return the short form of a JSON Schema, if it has one."""
    short = normalize({key: value for key, value in schema.items() if key != "default"})
    return None if short == "any" else short


def _item_type(kind: Type) -> Type:
    if isinstance(kind, str):
        return kind[:-2] if kind.endswith("[]") else None
    items = kind.get("items") if isinstance(kind, dict) else None
    return _type(items) if isinstance(items, dict) else None


def _script(source: When | None) -> Script | None:
    return Script(source) if isinstance(source, str) else source
