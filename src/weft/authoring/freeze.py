"""Freeze a plan: write it as a graph document with the same steps, so that its runs need no planning. Pure.

A step becomes a node that waits for the nodes of its providers and takes its arguments from them. A predicate becomes a
condition before the node, and an ``each`` need becomes a fan-out around it. A plan that a graph cannot express is
refused: for example one with gates, with several providers of which the first wins, or with optional facts that may
still arrive. The graph is less strict than the plan in two ways: it does not check the types of outputs, and the facts
of a goal that was skipped are null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from weft.core.goal.definitions import (
    AskWay,
    HttpWay,
    Need,
    PipelineWay,
    ScriptWay,
    StepDef,
    StepWay,
    WorkflowWay,
    give_key,
    inner_name,
)
from weft.core.goal.plan import GoalPlan, check_complete
from weft.core.goal.types import is_array
from weft.errors import BadPlan
from weft.steps.definition import DEFINED

StepParameters = Callable[[str], "list[str] | None"]
"""Returns the parameters of a registered step; None if no step has this name."""

ITEM = "each_item"
_FIELD = re.compile(r"[\w-]{1,100}")


def freeze(plan: GoalPlan, name: str, step_parameters: StepParameters) -> dict[str, Any]:
    """Return the document of a graph that does what the plan does.

    Raises:
        BadPlan: the plan is incomplete, or a graph cannot express it; the message names the step and the reason.
    """
    check_complete(plan)
    return _Freezer(plan, name, step_parameters).document()


class _Freezer:
    def __init__(self, plan: GoalPlan, name: str, step_parameters: StepParameters) -> None:
        self.plan = plan
        self.name = name
        self.step_parameters = step_parameters
        self.nodes: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        """The name of each step's node."""
        self.fan_outs: dict[str, list[str]] = {}
        """The steps with ``each`` needs, and the facts of these needs."""

    def document(self) -> dict[str, Any]:
        for step in self.plan.steps:
            self.names[step] = self._unused_name(re.sub(r"[^\w-]", "_", step))
        for step, definition in self.plan.steps.items():
            _refuse_inexpressible(definition)
            each = [fact for fact, need in sorted(definition.needs.items()) if need.each]
            if each:
                self.fan_outs[step] = each
        for step, definition in self.plan.steps.items():
            self._add_nodes(step, definition)
        self._add_edges()
        document: dict[str, Any] = {"weft": "graph/1", "name": self.name}
        if self.plan.given:
            document["input"] = {fact: self.plan.types.get(fact, "any") for fact in self.plan.given}
        return {**document, "nodes": self.nodes or {"done": {"pass": True}}, "output": self._output()}

    def _unused_name(self, name: str) -> str:
        taken = {
            *self.names.values(),
            *(f"{other}_{suffix}" for other in self.names.values() for suffix in ("if", "each", "all", "out", "asked")),
        }
        while name in taken:
            name += "_"
        return name

    # --- values -------------------------------------------------------------------------------------------------

    def _value(self, step: str, fact: str, need: Need) -> str | None:
        """Return the expression for a need; None if the argument is omitted."""
        if need.role == "const":
            return _literal(need.value)
        providers = list(self.plan.facts[fact].providers) if fact in self.plan.facts else []
        given = [_path("input", fact)] if fact in self.plan.given else []
        if need.collect == "all":
            return f"[{', '.join([*given, *(self._provided(provider, fact) for provider in providers)])}]"
        if given:
            return given[0]
        if need.role == "optional":
            if providers:
                names = ", ".join(providers)
                raise _not_freezable(step, f"only the run can tell whether {names} will provide {fact} in time")
            return None if need.default is msgspec.UNSET else _literal(need.default)
        if len(providers) != 1:
            names = ", ".join(providers)
            raise _not_freezable(step, f"{names} compete to provide {fact}, and a graph cannot wait for the first one")
        return self._provided(providers[0], fact)

    def _provided(self, step: str, fact: str) -> str:
        """Return the expression for a fact that a step provides."""
        definition = self.plan.steps[step]
        if step in self.fan_outs:
            entries = _path("state", f"{self.names[step]}_all")
            if len(definition.gives) == 1:
                return entries
            fields = ", ".join(f"{_literal(name)}: entry[{_literal(name)}]" for name in (*self.fan_outs[step], fact))
            return f"{entries}.map(entry, {{{fields}}})"
        return _fact_in_output(f"{_path('nodes', self.names[step])}.output", fact, definition)

    def _arguments(self, step: str, definition: StepDef) -> dict[str, str]:
        """Return the expressions for the arguments of a step by parameter name. An ``each`` need is one element."""
        arguments: dict[str, str] = {}
        for fact, need in sorted(definition.needs.items()):
            value = ITEM if need.each else self._value(step, fact, need)
            if value is not None:
                arguments[inner_name(fact, need)] = value
        return arguments

    # --- nodes --------------------------------------------------------------------------------------------------

    def _add_nodes(self, step: str, definition: StepDef) -> None:
        name, arguments = self.names[step], self._arguments(step, definition)
        node = {**self._work(step, definition, arguments), **_policies(definition)}
        each = self.fan_outs.get(step, [])
        condition = _condition(definition, arguments)
        # A predicate that reads the element is checked once per element, inside the fan-out.
        per_element = (
            bool(each)
            and condition is not None
            and inner_name(each[0], definition.needs[each[0]]) in _predicate_names(definition)
        )
        if each:
            source = self._value(step, each[0], definition.needs[each[0]])
            to = f"{name}_if" if per_element else name
            fan_out = {"for_each": f"${{{source}}}", "as": ITEM, "width": definition.width, "to": to}
            self.nodes[f"{name}_each"] = {"pass": True, "next": [fan_out]}
            node["save"] = {f"branch.{each[0]}": f"${{{ITEM}}}"}
            node["save"] |= {
                f"branch.{fact}": f"${{{_fact_in_output('output', fact, definition)}}}"
                for fact in sorted(definition.gives)
            }
            node["next"] = f"{name}_all"
        elif step in self.plan.goals:
            # The output of the run is computed from its state, because ``nodes`` cannot be read at the end.
            node["save"] = {f"state.{name}_out": "${output}"}
        if condition is not None:
            to = name if per_element or not each else f"{name}_each"
            check = {"pass": True, "on_no_match": "end", "next": [{"when": condition, "to": to}]}
            if step in self.plan.goals and not per_element:
                # A goal whose predicate was false is skipped and gives null; a goal that was never reached has failed.
                check["save"] = {f"state.{name}_asked": True}
            self.nodes[f"{name}_if"] = check
        self.nodes[name] = node
        if each:
            merge = {"from": "*", "how": "append", "into": f"state.{name}_all"}
            self.nodes[f"{name}_all"] = {"join": "all", "of": f"{name}_each", "merge": merge}

    def _work(self, step: str, definition: StepDef, arguments: dict[str, str]) -> dict[str, Any]:
        templates = {name: f"${{{value}}}" for name, value in arguments.items()}
        match definition.way:
            case StepWay(step=registered):
                whole = self.step_parameters(registered) == ["input"]
                return {"step": registered, "with": templates.get("input", {}) if whole else templates}
            case HttpWay(answer="later"):
                raise _not_freezable(step, "its answer comes later by webhook, and a graph cannot wait for that")
            case HttpWay() | ScriptWay() | PipelineWay():
                return {"step": DEFINED, "with": {"definition": _encoded(definition), "arguments": templates}}
            case WorkflowWay(workflow=workflow, version=version):
                call: Any = {"name": workflow, "version": version} if version else workflow
                return {"workflow": call, "with": templates}
            case AskWay() as ask:
                if "${" in ask.title:
                    raise _not_freezable(step, "the title of its question is a template that reads the step's needs")
                return {"ask": {**_question(ask, definition.policy.timeout_ms), "about": templates}}
        raise _not_freezable(step, "it plans goals of its own while it runs")

    def _add_edges(self) -> None:
        """Add edges from the providers of each step to its first node."""
        edges: dict[str, list[str]] = {}
        for step, definition in self.plan.steps.items():
            sources = self._sources(definition)
            first = self._first_node_of(step)
            for source in sources:
                edges.setdefault(self._last_node(source), []).append(first)
            if len(sources) > 1:
                self.nodes[first]["join"] = "edges"
            if sources and first != self.names[step]:
                self.nodes[first]["with"] = {"facts": self._all_facts(definition)}
        for source, targets in edges.items():
            self.nodes[source]["next"] = [{"to": targets if len(targets) > 1 else targets[0]}]

    def _all_facts(self, definition: StepDef) -> str:
        """Return an expression that reads all facts of a step, and fails if a provider was skipped.

        The step fails then, even if its predicate is false.
        """
        provided = [
            self._provided(provider, fact)
            for fact, need in sorted(definition.needs.items())
            if need.role != "const" and fact in self.plan.facts
            if not (need.collect == "first" and fact in self.plan.given)
            for provider in self.plan.facts[fact].providers
        ]
        return f"${{size([{', '.join(provided)}])}}"

    def _sources(self, definition: StepDef) -> list[str]:
        providers: dict[str, None] = {}
        for fact, need in sorted(definition.needs.items()):
            use = self.plan.facts.get(fact)
            if need.role == "const" or use is None or (need.collect == "first" and fact in self.plan.given):
                continue
            providers |= dict.fromkeys(use.providers)
        return list(providers)

    def _first_node_of(self, step: str) -> str:
        name = self.names[step]
        if step in self.fan_outs:
            check = self.nodes.get(f"{name}_if")
            return f"{name}_if" if check is not None and check["next"][0]["to"] == f"{name}_each" else f"{name}_each"
        return f"{name}_if" if f"{name}_if" in self.nodes else name

    def _last_node(self, step: str) -> str:
        return f"{self.names[step]}_all" if step in self.fan_outs else self.names[step]

    def _output(self) -> dict[str, str]:
        output: dict[str, str] = {}
        for goal in self.plan.goals:
            if goal not in self.plan.steps:
                for fact in self.plan.excluded[goal].by:
                    output.setdefault(fact, f"${{{_path('input', fact)}}}")
                continue
            definition = self.plan.steps[goal]
            # The result of a goal without ``gives`` is a fact with the name of the goal.
            for fact in sorted(definition.gives) or ([] if goal in self.fan_outs else [goal]):
                suffix = "all" if goal in self.fan_outs else "out"
                field = f"{self.names[goal]}_{suffix}"
                value = _path("state", field)
                if definition.gives and goal in self.fan_outs:
                    value = self._provided(goal, fact)
                elif definition.gives:
                    value = _fact_in_output(value, fact, definition)
                asked = f"{self.names[goal]}_asked"
                if "save" in self.nodes.get(f"{self.names[goal]}_if", {}):
                    performed_or_failed = f"{_literal(field)} in state || !({_literal(asked)} in state)"
                    value = f"{performed_or_failed} ? {value} : null"
                output.setdefault(fact, f"${{{value}}}")
        return output


# --- what a graph cannot express ---------------------------------------------------------------------------------


def _not_freezable(step: str, why: str) -> BadPlan:
    return BadPlan(
        f"{step} cannot be frozen: {why}.",
        hint="Run the goal itself, or pass the fact in at the start.",
        code="goal.not_freezable",
        step=step,
    )


def _refuse_inexpressible(definition: StepDef) -> None:
    step = definition.id
    for fact, need in definition.needs.items():
        if need.meta or need.mapping is not None:
            raise _not_freezable(step, f"its argument {fact} is computed when the step starts")
        if need.is_gate:
            raise _not_freezable(step, f"{fact} is a gate, and a graph cannot wait for a gate")
        if need.collect not in ("first", "all"):
            raise _not_freezable(
                step, f'it collects {fact} with "{need.collect}", and a graph can only use first or all'
            )
        if need.each and not _FIELD.fullmatch(fact):
            raise _not_freezable(step, f'"{fact}" cannot be the name of a field of a branch')
        if need.each and not is_array(need.type) and not need.is_list:
            raise _not_freezable(step, f"it runs once per element of {fact}, which must be declared as an array")
    if sum(need.each for need in definition.needs.values()) > 1:
        raise _not_freezable(step, "it combines the elements of several arrays")
    for fact, give in definition.gives.items():
        if give.mapping is not None:
            raise _not_freezable(step, f"its output {fact} is computed by a mapping")
        if not _FIELD.fullmatch(fact):
            raise _not_freezable(step, f'"{fact}" cannot be the name of a field of a branch')
    if definition.undo is not None and isinstance(definition.way, HttpWay | ScriptWay | PipelineWay):
        raise _not_freezable(step, "its undo needs the input and output of the step, which only a goal run keeps")
    if definition.when is not None and definition.when.lang != "cel":
        language = definition.when.lang.capitalize()
        raise _not_freezable(step, f"its predicate is written in {language}, and conditions of graphs must be CEL")


# --- parts of the document ---------------------------------------------------------------------------------------


def _path(root: str, name: str) -> str:
    return f"{root}.{name}" if re.fullmatch(r"[A-Za-z_]\w*", name) else f"{root}[{_literal(name)}]"


def _literal(value: Any) -> str:
    """Write a JSON value as CEL."""
    # The text ``${`` would begin an expression in the surrounding template.
    return json.dumps(value, ensure_ascii=False).replace("${", "\\u0024{")


def _encoded(definition: StepDef) -> str:
    return msgspec.json.encode(definition).decode().replace("${", "\\u0024{")


def _fact_in_output(output: str, fact: str, definition: StepDef) -> str:
    """Return the expression that reads a fact from the output of its step."""
    give = definition.gives[fact]
    return output if give.whole else f"{output}[{_literal(give_key(fact, give))}]"


def _predicate_names(definition: StepDef) -> set[str]:
    assert definition.when is not None
    return set(re.findall(r"[A-Za-z_]\w*", definition.when.source))


def _condition(definition: StepDef, arguments: dict[str, str]) -> str | None:
    """Return the predicate of a step as a condition, with the step's parameter names bound to graph expressions."""
    if definition.when is None:
        return None
    condition = definition.when.source
    names = [inner_name(fact, need) for fact, need in definition.needs.items()]
    for name in sorted(set(names) & _predicate_names(definition), reverse=True):
        condition = f"[{arguments.get(name, 'null')}].all({name}, {condition})"
    return condition


def _question(ask: AskWay, timeout_ms: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "title": ask.title,
        "form": ask.form,
        "of": ask.of,
        "quorum": ask.quorum,
        "on_timeout": {"escalate": ask.escalate} if ask.escalate else ask.on_timeout,
        "four_eyes": ask.four_eyes,
        "remind": f"{ask.remind_ms}ms" if ask.remind_ms else None,
        "timeout": f"{timeout_ms}ms" if timeout_ms else None,
    }
    return {key: value for key, value in fields.items() if value not in (None, [], False, "any", "fail")}


def _policies(definition: StepDef) -> dict[str, Any]:
    policy = definition.policy
    fields: dict[str, Any] = {}
    if isinstance(definition.way, AskWay):
        return fields
    if not isinstance(definition.way, WorkflowWay):
        fields["retry"] = {
            "attempts": policy.attempts_max,
            "backoff": policy.backoff,
            "delay": f"{policy.delay_ms}ms",
            "max_delay": f"{policy.delay_ms_max}ms",
        }
    if policy.timeout_ms:
        fields["timeout"] = f"{policy.timeout_ms}ms"
    if policy.queue != "default":
        fields["queue"] = policy.queue
    return fields
