"""Writes a plan as a graph document with the same steps, so that its runs plan nothing. Pure.

A step becomes a node that waits for the nodes of its providers and takes its arguments from them. A predicate becomes a
condition before the node, an `each` need a fan-out around it. What a graph cannot express (gates, the first of
several providers, optional facts that may still come) is refused. Two things are looser than in the plan: types of
outputs are not checked, and what a skipped goal would have given is null.
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
    ScriptWay,
    StepDef,
    StepWay,
    WorkflowWay,
    give_key,
    inner_name,
)
from weft.core.goal.plan import GoalPlan, refuse_incomplete
from weft.core.goal.types import is_array
from weft.errors import BadPlan
from weft.steps.definition import DEFINED

Takes = Callable[[str], "list[str] | None"]
"""The parameters of a registered step, if it is known."""

ITEM = "each_item"
_FIELD = re.compile(r"[\w-]{1,100}")


def freeze(plan: GoalPlan, name: str, takes: Takes) -> dict[str, Any]:
    """Return the document of a graph that does what the plan does.

    Raises:
        BadPlan: it could not start, or a graph cannot say it; the message names the step and why.
    """
    refuse_incomplete(plan)
    return _Freezer(plan, name, takes).document()


class _Freezer:
    def __init__(self, plan: GoalPlan, name: str, takes: Takes) -> None:
        self.plan = plan
        self.name = name
        self.takes = takes
        self.nodes: dict[str, dict[str, Any]] = {}
        self.names: dict[str, str] = {}
        """The node of each step."""
        self.fanned: dict[str, list[str]] = {}
        """Steps with work items: the facts whose elements stand in each entry."""

    def document(self) -> dict[str, Any]:
        for step in self.plan.steps:
            self.names[step] = self._unused(re.sub(r"[^\w-]", "_", step))
        for step, definition in self.plan.steps.items():
            _refuse_unsayable(definition)
            each = [fact for fact, need in sorted(definition.needs.items()) if need.each]
            if each:
                self.fanned[step] = each
        for step, definition in self.plan.steps.items():
            self._place(step, definition)
        self._lead()
        document: dict[str, Any] = {"weft": "graph/1", "name": self.name}
        if self.plan.given:
            document["input"] = {fact: self.plan.types.get(fact, "any") for fact in self.plan.given}
        return {**document, "nodes": self.nodes or {"done": {"pass": True}}, "output": self._output()}

    def _unused(self, name: str) -> str:
        taken = {
            *self.names.values(),
            *(f"{other}_{end}" for other in self.names.values() for end in ("if", "each", "all", "out", "asked")),
        }
        while name in taken:
            name += "_"
        return name

    # --- values -------------------------------------------------------------------------------------------------

    def _value(self, step: str, fact: str, need: Need) -> str | None:
        """Return the expression for a need; None if it is left out."""
        if need.role == "const":
            return _literal(need.value)
        providers = list(self.plan.facts[fact].providers) if fact in self.plan.facts else []
        given = [_path("input", fact)] if fact in self.plan.given else []
        if need.collect == "all":
            return f"[{', '.join([*given, *(self._given_by(provider, fact) for provider in providers)])}]"
        if given:
            return given[0]
        if need.role == "optional":
            if providers:
                raise _cannot(step, f"whether {fact} comes from {', '.join(providers)} in time is decided by the run")
            return None if need.default is msgspec.UNSET else _literal(need.default)
        if len(providers) != 1:
            raise _cannot(step, f"{', '.join(providers)} compete for {fact}, and a graph knows no first among them")
        return self._given_by(providers[0], fact)

    def _given_by(self, step: str, fact: str) -> str:
        definition = self.plan.steps[step]
        if step in self.fanned:
            entries = _path("state", f"{self.names[step]}_all")
            if len(definition.gives) == 1:
                return entries
            fields = ", ".join(f"{_literal(name)}: entry[{_literal(name)}]" for name in (*self.fanned[step], fact))
            return f"{entries}.map(entry, {{{fields}}})"
        return _part(f"{_path('nodes', self.names[step])}.output", fact, definition)

    def _arguments(self, step: str, definition: StepDef) -> dict[str, str]:
        """Return the expressions for the arguments of a step, by inner name; for work items those of one element."""
        found: dict[str, str] = {}
        for fact, need in sorted(definition.needs.items()):
            value = ITEM if need.each else self._value(step, fact, need)
            if value is not None:
                found[inner_name(fact, need)] = value
        return found

    # --- nodes --------------------------------------------------------------------------------------------------

    def _place(self, step: str, definition: StepDef) -> None:
        name, arguments = self.names[step], self._arguments(step, definition)
        node = {**self._work(step, definition, arguments), **_policies(definition)}
        each = self.fanned.get(step, [])
        condition = _condition(definition, arguments)
        apart = (
            bool(each)
            and condition is not None
            and inner_name(each[0], definition.needs[each[0]]) in _words(definition)
        )
        if each:
            source = self._value(step, each[0], definition.needs[each[0]])
            to = f"{name}_if" if apart else name
            fan_out = {"for_each": f"${{{source}}}", "as": ITEM, "width": definition.width, "to": to}
            self.nodes[f"{name}_each"] = {"pass": True, "next": [fan_out]}
            node["save"] = {f"branch.{each[0]}": f"${{{ITEM}}}"}
            node["save"] |= {
                f"branch.{fact}": f"${{{_part('output', fact, definition)}}}" for fact in sorted(definition.gives)
            }
            node["next"] = f"{name}_all"
        elif step in self.plan.goals:
            # The output is made from the state of the run: by then no token has seen a node.
            node["save"] = {f"state.{name}_out": "${output}"}
        if condition is not None:
            to = name if apart or not each else f"{name}_each"
            gate = {"pass": True, "on_no_match": "end", "next": [{"when": condition, "to": to}]}
            if step in self.plan.goals and not apart:
                # A step whose predicate said no is skipped, which is an answer; one that never got there has failed.
                gate["save"] = {f"state.{name}_asked": True}
            self.nodes[f"{name}_if"] = gate
        self.nodes[name] = node
        if each:
            merge = {"from": "*", "how": "append", "into": f"state.{name}_all"}
            self.nodes[f"{name}_all"] = {"join": "all", "of": f"{name}_each", "merge": merge}

    def _work(self, step: str, definition: StepDef, arguments: dict[str, str]) -> dict[str, Any]:
        filled = {name: f"${{{value}}}" for name, value in arguments.items()}
        match definition.way:
            case StepWay(step=registered):
                whole = self.takes(registered) == ["input"]
                return {"step": registered, "with": filled.get("input", {}) if whole else filled}
            case HttpWay(answer="later"):
                raise _cannot(step, "its answer comes later, and a node of a graph answers when it is done")
            case HttpWay() | ScriptWay():
                return {"step": DEFINED, "with": {"definition": _encoded(definition), "arguments": filled}}
            case WorkflowWay(workflow=workflow, version=version):
                call: Any = {"name": workflow, "version": version} if version else workflow
                return {"workflow": call, "with": filled}
            case AskWay() as ask:
                if "${" in ask.title:
                    raise _cannot(step, "its title is filled with names that only the step knows")
                return {"ask": {**_question(ask, definition.policy.timeout_ms), "about": filled}}
        raise _cannot(step, "it plans goals of its own while it runs")

    def _lead(self) -> None:
        """Add edges from the providers of each step to the node where it begins."""
        ways: dict[str, list[str]] = {}
        for step, definition in self.plan.steps.items():
            sources = self._sources(definition)
            begins = self._begins(step)
            for source in sources:
                ways.setdefault(self._ends(source), []).append(begins)
            if len(sources) > 1:
                self.nodes[begins]["join"] = "edges"
            if sources and begins != self.names[step]:
                self.nodes[begins]["with"] = {"facts": self._all_there(definition)}
        for source, targets in ways.items():
            self.nodes[source]["next"] = [{"to": targets if len(targets) > 1 else targets[0]}]

    def _all_there(self, definition: StepDef) -> str:
        """Add a node that fails if a provider was skipped: then the step has failed, whatever its predicate says."""
        given = [
            self._given_by(provider, fact)
            for fact, need in sorted(definition.needs.items())
            if need.role != "const" and fact in self.plan.facts
            if not (need.collect == "first" and fact in self.plan.given)
            for provider in self.plan.facts[fact].providers
        ]
        return f"${{size([{', '.join(given)}])}}"

    def _sources(self, definition: StepDef) -> list[str]:
        found: dict[str, None] = {}
        for fact, need in sorted(definition.needs.items()):
            use = self.plan.facts.get(fact)
            if need.role == "const" or use is None or (need.collect == "first" and fact in self.plan.given):
                continue
            found |= dict.fromkeys(use.providers)
        return list(found)

    def _begins(self, step: str) -> str:
        name = self.names[step]
        if step in self.fanned:
            before = self.nodes.get(f"{name}_if")
            return f"{name}_if" if before is not None and before["next"][0]["to"] == f"{name}_each" else f"{name}_each"
        return f"{name}_if" if f"{name}_if" in self.nodes else name

    def _ends(self, step: str) -> str:
        return f"{self.names[step]}_all" if step in self.fanned else self.names[step]

    def _output(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for goal in self.plan.goals:
            if goal not in self.plan.steps:
                for fact in self.plan.excluded[goal].by:
                    found.setdefault(fact, f"${{{_path('input', fact)}}}")
                continue
            definition = self.plan.steps[goal]
            # A goal without ``gives`` gives what it returns, under its own name.
            for fact in sorted(definition.gives) or ([] if goal in self.fanned else [goal]):
                end = "all" if goal in self.fanned else "out"
                field = f"{self.names[goal]}_{end}"
                value = _path("state", field)
                if definition.gives:
                    value = self._given_by(goal, fact) if goal in self.fanned else _part(value, fact, definition)
                asked = f"{self.names[goal]}_asked"
                if "save" in self.nodes.get(f"{self.names[goal]}_if", {}):
                    there = f"{_literal(field)} in state || !({_literal(asked)} in state)"
                    value = f"{there} ? {value} : null"
                found.setdefault(fact, f"${{{value}}}")
        return found


# --- what a graph cannot say -------------------------------------------------------------------------------------


def _cannot(step: str, why: str) -> BadPlan:
    return BadPlan(
        f"{step} cannot be frozen: {why}.",
        hint="Run the goal itself, or give the fact at the start.",
        code="goal.not_freezable",
        step=step,
    )


def _refuse_unsayable(definition: StepDef) -> None:
    step = definition.id
    for fact, need in definition.needs.items():
        if need.meta or need.mapping is not None:
            raise _cannot(step, f"{fact} is made when the step starts")
        if need.is_gate:
            raise _cannot(step, f"{fact} is a gate, which a graph does not wait for")
        if need.collect not in ("first", "all"):
            raise _cannot(step, f"it takes the {need.collect} of {fact}, whoever fails")
        if need.each and not _FIELD.fullmatch(fact):
            raise _cannot(step, f"{fact} cannot name a field of a branch")
        if need.each and not is_array(need.type) and not need.is_list:
            raise _cannot(step, f"{fact} is taken apart only if it is an array; declare it as one")
    if sum(need.each for need in definition.needs.values()) > 1:
        raise _cannot(step, "it multiplies several arrays")
    for fact, give in definition.gives.items():
        if give.mapping is not None:
            raise _cannot(step, f"{fact} is made by a mapping")
        if not _FIELD.fullmatch(fact):
            raise _cannot(step, f"{fact} cannot name a field of a branch")
    if definition.undo is not None and isinstance(definition.way, HttpWay | ScriptWay):
        raise _cannot(step, "its undo is given what only a goal run keeps")
    if definition.when is not None and definition.when.lang != "cel":
        raise _cannot(step, f"its predicate is {definition.when.lang.capitalize()}, and conditions of graphs are CEL")


# --- words of documents ------------------------------------------------------------------------------------------


def _path(root: str, name: str) -> str:
    return f"{root}.{name}" if re.fullmatch(r"[A-Za-z_]\w*", name) else f"{root}[{_literal(name)}]"


def _literal(value: Any) -> str:
    """Write a JSON value as CEL."""
    # A brace after a dollar would begin an expression of the template around it.
    return json.dumps(value, ensure_ascii=False).replace("${", "\\u0024{")


def _encoded(definition: StepDef) -> str:
    return msgspec.json.encode(definition).decode().replace("${", "\\u0024{")


def _part(output: str, fact: str, definition: StepDef) -> str:
    """Return where one of a step's facts is in what the step returned."""
    give = definition.gives[fact]
    return output if give.whole else f"{output}[{_literal(give_key(fact, give))}]"


def _words(definition: StepDef) -> set[str]:
    assert definition.when is not None
    return set(re.findall(r"[A-Za-z_]\w*", definition.when.source))


def _condition(definition: StepDef, arguments: dict[str, str]) -> str | None:
    """Write a predicate over a step's own names, each bound to what the graph has for it."""
    if definition.when is None:
        return None
    condition = definition.when.source
    names = [inner_name(fact, need) for fact, need in definition.needs.items()]
    for name in sorted(set(names) & _words(definition), reverse=True):
        condition = f"[{arguments.get(name, 'null')}].all({name}, {condition})"
    return condition


def _question(ask: AskWay, timeout_ms: int) -> dict[str, Any]:
    said: dict[str, Any] = {
        "title": ask.title,
        "form": ask.form,
        "of": ask.of,
        "quorum": ask.quorum,
        "on_timeout": {"escalate": ask.escalate} if ask.escalate else ask.on_timeout,
        "four_eyes": ask.four_eyes,
        "remind": f"{ask.remind_ms}ms" if ask.remind_ms else None,
        "timeout": f"{timeout_ms}ms" if timeout_ms else None,
    }
    return {key: value for key, value in said.items() if value not in (None, [], False, "any", "fail")}


def _policies(definition: StepDef) -> dict[str, Any]:
    policy = definition.policy
    found: dict[str, Any] = {}
    if isinstance(definition.way, AskWay):
        return found
    if not isinstance(definition.way, WorkflowWay):
        found["retry"] = {
            "attempts": policy.attempts_max,
            "backoff": policy.backoff,
            "delay": f"{policy.delay_ms}ms",
            "max_delay": f"{policy.delay_ms_max}ms",
        }
    if policy.timeout_ms:
        found["timeout"] = f"{policy.timeout_ms}ms"
    if policy.queue != "default":
        found["queue"] = policy.queue
    return found
