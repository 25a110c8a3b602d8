"""Bind the inputs of a step to the values of its needs, and split them into work items. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT, FactRef
from weft.core.goal import types
from weft.core.goal.definitions import StepDef, inner_name
from weft.core.goal.nodes import NeedNode, StepNode
from weft.core.goal.plan import GoalPlan
from weft.core.goal.scripts import ScriptReader, Unmapped, decode_json, decode_parts, encode_json, load_contents
from weft.core.goal.shape import NeedShape, StepShape
from weft.core.goal.state import GoalState, Value
from weft.core.goal.types import type_error
from weft.core.run.env import Env
from weft.core.values import INLINE_BYTES_MAX, MARKED, is_ref, unseal
from weft.errors import BadValue, Failure, WeftError

ITEMS_MAX = 10_000


class BadInput(Exception):
    """A bound value has the wrong type, or cannot be mapped."""

    def __init__(self, fact: str, why: str) -> None:
        super().__init__(why)
        self.fact = fact
        self.why = why

    def failure(self, step: str) -> Failure:
        return Failure(
            type="bad_input",
            message=f"bad_input: {self.fact}",
            code="bad_input",
            step=step,
            attributes={"why": self.why},
        )


class BoundInputs:
    """The inputs of a step by inner name. ``arrays`` has those that are split: fact, inner name, elements."""

    __slots__ = ("arrays", "inputs")

    def __init__(self, step: StepShape, inputs: dict[str, Any]) -> None:
        self.inputs = inputs
        self.arrays: Sequence[tuple[str, str, list[Any]]] = ()
        if step.each_needs:
            split = [need for need in step.each_needs if isinstance(inputs.get(need.name), list)]
            self.arrays = [(need.fact, need.name, inputs[need.name]) for need in split]

    @property
    def count(self) -> int:
        return prod(len(elements) for _, _, elements in self.arrays) if self.arrays else 1

    @property
    def item_names(self) -> frozenset[str]:
        """The names that are bound per item."""
        return frozenset(name for _, name, _ in self.arrays)

    def elements(self, index: int) -> list[tuple[str, str, Any]]:
        """Return the elements of one item. The last fact varies fastest."""
        found = []
        for fact, name, elements in reversed(self.arrays):
            index, at = divmod(index, len(elements))
            found.append((fact, name, elements[at]))
        return found[::-1]

    def item(self, index: int) -> dict[str, Any]:
        """Return the inputs of one item."""
        return {**self.inputs, **{name: element for _, name, element in self.elements(index)}}

    def each(self, index: int) -> dict[str, Any]:
        """Return the ``each`` values of one item, by fact."""
        return {fact: element for fact, _, element in self.elements(index)}


def chosen_values(need: NeedNode, values: Sequence[Value]) -> list[int]:
    """Return the values that a need receives, as positions among the values of its fact."""
    collect = need.need.collect
    limit = need.step.run.decided.get(need.fact.name)
    if limit is not None or (need.lazy and need.state == "open"):
        # The need is decided while open, so only ``last`` and ``some`` can use the values that exist so far.
        pool = range(len(values[:limit]) if collect in ("last", "some") else 0)
    else:
        pool = range(len(values) if need.state == "met" else 0)
    places = [place for place in pool if need.need.match is None or need.step.id in values[place].matched]
    match collect:
        case "first":
            return places[:1]
        case "last":
            return places[-1:]
        case "none":
            return []
    return sorted(places, key=lambda place: values[place].provider)


def reference_inputs(step: StepNode, state: GoalState, env: Env) -> tuple[Raw, dict[str, FactRef]] | None:
    """Return the inputs of a step as references into the log: its constants and defaults, and the facts by inner name.

    Returns None if the step must read a value, if a value is in a blob, or if the values are too large for the log.

    Raises:
        BadInput: a value has the wrong type.
    """
    shape = step.shape
    if not shape.opaque or shape.meta:
        return None
    own: dict[str, Any] = {}
    refs: dict[str, FactRef] = {}
    size = 0
    needs = iter(step.needs)
    for bound in shape.bound:
        if bound.need.role == "const":
            own[bound.name] = bound.need.value
            continue
        values = state.facts.get(bound.fact, ())
        places = chosen_values(next(needs), values)
        if not places:
            if bound.need.default is not msgspec.UNSET:
                own[bound.name] = bound.need.default
            continue
        for place in places:
            raw = bytes(values[place].value)
            size += len(raw)
            if raw.startswith(MARKED):
                if is_ref(raw):
                    return None
                raw = unseal(raw)
            if bound.type is not None and values[place].provider not in bound.trusted:
                read_value(shape, bound, values[place], raw, env)
        refs[bound.name] = FactRef(bound.fact, places if bound.need.is_list else places[0])
    kept = Raw(encode_json(own)) if own or not refs else ABSENT
    return (kept, refs) if size + len(kept) < INLINE_BYTES_MAX // 2 else None


def assemble_inputs(inputs: Raw, refs: Mapping[str, FactRef], facts: Mapping[str, Sequence[Value]]) -> Raw:
    """Assemble the inputs of a step from its own values and from the facts that it refers to."""
    if not refs:
        return inputs
    parts = [bytes(inputs)[1:-1]] if inputs else []
    for name, ref in refs.items():
        values = facts[ref.fact]
        if isinstance(ref.at, int):
            found = bytes(values[ref.at].value)
            if found.startswith(MARKED):
                found = unseal(found)
        else:
            found = b"[%b]" % b",".join(unseal(bytes(values[place].value)) for place in ref.at)
        parts.append(b"%b:%b" % (encode_json(name), found))
    return Raw(b"{%b}" % b",".join(parts))


def bind(step: StepNode, state: GoalState, reader: ScriptReader, env: Env) -> BoundInputs:
    """Return the inputs of a step that can start. Values that differ between items (``metadata``) are added later.

    Raises:
        BadInput: a value has the wrong type, or cannot be mapped.
        MissingInputs: a value is in a blob, or the runtime must evaluate a mapping.
    """
    chosen = []
    for node in step.needs:
        values = state.facts.get(node.fact.name, ())
        chosen.append([values[place] for place in chosen_values(node, values)])
    loaded = iter(load_contents([value.value for values in chosen for value in values], env))
    counts = iter(chosen)
    inputs: dict[str, Any] = {}
    for shape in step.shape.bound:
        need = shape.need
        if need.role == "const":
            if not need.meta:
                inputs[shape.name] = need.value
            continue
        taken = next(counts)
        parts = [next(loaded) for _ in taken]
        if not parts:
            if need.default is not msgspec.UNSET:
                inputs[shape.name] = _map_value(shape, need.default, reader)
            continue
        found = [read_value(step.shape, shape, value, part, env) for value, part in zip(taken, parts, strict=True)]
        inputs[shape.name] = _map_value(shape, found if need.is_list else found[0], reader)
    return BoundInputs(step.shape, inputs)


def _map_value(shape: NeedShape, value: Any, reader: ScriptReader) -> Any:
    """Apply the mapping of a need to a value. Without a mapping, return the value unchanged."""
    mapping = shape.need.mapping
    if mapping is None:
        return value
    try:
        return reader.value(mapping, {"value": value, shape.name: value})
    except Unmapped:
        raise BadInput(shape.fact, f"the mapping {mapping.source} selects nothing") from None
    except WeftError as error:
        raise BadInput(shape.fact, error.message) from error


def metadata(step: StepNode, state: GoalState, index: int) -> dict[str, Any]:
    """Return the metadata of one item of a step, by inner name."""
    wanted = step.shape.meta
    if not wanted:
        return {}
    place = f"{step.id}[{index}]" if step.run.fan_out else step.id
    times = state.renewed.get(place, 0)
    key = f"{state.uid}/{place}~{times}" if times else f"{state.uid}/{place}"
    parent = state.parent.run_id if state.parent is not None else None
    known = {
        "flow_id": state.run_id,
        "run_id": state.run_id,
        "step_id": step.id,
        "receipt_token": key,
        "key": key,
        "parent_flow_id": parent,
    }
    return {shape.name: known[shape.need.meta] for shape in wanted}


def read_value(step: StepShape, need: NeedShape, value: Value, part: bytes, env: Env) -> Any:
    """Return a value as JSON builtins, or as raw JSON if the step does not read it."""
    trusted = need.type is None or value.provider in need.trusted
    if trusted and step.opaque:
        return Raw(part)
    found = decode_json(part)
    why = None if trusted or need.type is None else types.normal_type_error(need.type, found, part, env.check)
    if why is not None:
        raise BadInput(need.fact, why)
    return found


def predicate_bindings(definition: StepDef, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the names that a predicate can use. Missing inputs are null. For jpath, all inputs are one ``value``."""
    if definition.when is not None and definition.when.lang == "jpath":
        return {"value": inputs}
    needs = [(fact, need) for fact, need in definition.needs.items() if need.collect != "none" and not need.meta]
    return {name: inputs.get(name) for name in (inner_name(fact, need) for fact, need in needs)}


def given_type_error(plan: GoalPlan, given: Mapping[str, bytes], env: Env) -> str | None:
    """Return which given value has the wrong type, and why, or None."""
    for name, declared in plan.types.items():
        raw = given.get(name)
        why = None if raw is None else type_error(declared, decode_json(raw), raw, env.check)
        if why is not None:
            return f"the given {name} has the wrong type: {why}"
    return None


def given_values(body: bytes) -> dict[str, bytes]:
    """Return the given values of a run, by fact.

    Raises:
        BadValue: the input is not an object.
    """
    if body == b"null":
        return {}
    try:
        return {name: bytes(raw) for name, raw in decode_parts(body).items()}
    except msgspec.ValidationError:
        raise BadValue(
            "The input of a goal run must be an object of facts.",
            hint='For example: {"order_id": "o-1"}.',
            code="value.wrong_type",
        ) from None
