"""What a step is handed: the values of its needs, bound once, and how they are taken apart into work items. Pure."""

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
from weft.core.goal.scripts import ScriptReader, Unmapped, contents, decode_json, encode_json
from weft.core.goal.shape import NeedShape, StepShape
from weft.core.goal.state import GoalState, Value
from weft.core.run.env import Env
from weft.core.values import INLINE_BYTES_MAX, MARKED, is_ref, unseal
from weft.errors import Failure, WeftError

ITEMS_MAX = 10_000


class BadInput(Exception):
    """A bound value is not of the type that the step declares."""

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


class Bound:
    """The inputs of a step by inner name, and which of them are taken apart: (fact, inner name, elements)."""

    __slots__ = ("arrays", "inputs")

    def __init__(self, step: StepShape, inputs: dict[str, Any]) -> None:
        self.inputs = inputs
        self.arrays: Sequence[tuple[str, str, list[Any]]] = ()
        if step.apart:
            apart = [need for need in step.apart if isinstance(inputs.get(need.name), list)]
            self.arrays = [(need.fact, need.name, inputs[need.name]) for need in apart]

    @property
    def count(self) -> int:
        return prod(len(elements) for _, _, elements in self.arrays) if self.arrays else 1

    @property
    def names_apart(self) -> frozenset[str]:
        """Names that are bound per item only."""
        return frozenset(name for _, name, _ in self.arrays)

    def elements(self, index: int) -> list[tuple[str, str, Any]]:
        """The elements of one item: the last fact varies fastest."""
        found = []
        for fact, name, elements in reversed(self.arrays):
            index, at = divmod(index, len(elements))
            found.append((fact, name, elements[at]))
        return found[::-1]

    def item(self, index: int) -> dict[str, Any]:
        """What one item is handed."""
        return {**self.inputs, **{name: element for _, name, element in self.elements(index)}}

    def each(self, index: int) -> dict[str, Any]:
        """The each values of one item, by fact."""
        return {fact: element for fact, _, element in self.elements(index)}


def chosen(need: NeedNode, values: Sequence[Value]) -> list[int]:
    """The values that a need is handed, by their places among those that its fact has."""
    collect = need.need.collect
    limit = need.step.run.decided.get(need.fact.name)
    if limit is not None or (need.lazy and need.state == "open"):
        # Decided while it was open: only these two can take what there is.
        pool = range(len(values[:limit]) if collect in ("last", "some") else 0)
    else:
        pool = range(len(values) if need.state == "met" else 0)
    found = [place for place in pool if need.need.match is None or need.step.id in values[place].matched]
    match collect:
        case "first":
            return found[:1]
        case "last":
            return found[-1:]
        case "none":
            return []
    return sorted(found, key=lambda place: values[place].provider)


def referred(step: StepNode, state: GoalState, env: Env) -> tuple[Raw, dict[str, FactRef]] | None:
    """The inputs of a step as the log has them already: constants and defaults, and by inner name the facts.

    None: someone must look into a value, or it lies in a blob, or all are too large for the log.

    Raises:
        BadInput: one of them is not of its type.
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
        places = chosen(next(needs), values)
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
                _looked_at(shape, bound, values[place], raw, env)
        refs[bound.name] = FactRef(bound.fact, places if bound.need.is_list else places[0])
    kept = Raw(encode_json(own)) if own or not refs else ABSENT
    return (kept, refs) if size + len(kept) < INLINE_BYTES_MAX // 2 else None


def bound_inputs(inputs: Raw, refs: Mapping[str, FactRef], facts: Mapping[str, Sequence[Value]]) -> Raw:
    """The inputs of a step, put together from its own and from facts."""
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


def bind(step: StepNode, state: GoalState, reader: ScriptReader, env: Env) -> Bound:
    """The inputs of a step that can start; what differs between items (`metadata`) comes later.

    Raises:
        BadInput: one of them is not of its type, or cannot be mapped.
        MissingInputs: some lie in blobs, or a mapping is asked of the shell.
    """
    picked = []
    for node in step.needs:
        values = state.facts.get(node.fact.name, ())
        picked.append([values[place] for place in chosen(node, values)])
    loaded = iter(contents([value.value for values in picked for value in values], env))
    counts = iter(picked)
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
                inputs[shape.name] = _mapped(shape, need.default, reader)
            continue
        found = [_looked_at(step.shape, shape, value, part, env) for value, part in zip(taken, parts, strict=True)]
        inputs[shape.name] = _mapped(shape, found if need.is_list else found[0], reader)
    return Bound(step.shape, inputs)


def _mapped(shape: NeedShape, value: Any, reader: ScriptReader) -> Any:
    """What a mapping makes of a value; without one it is handed over as it is."""
    mapping = shape.need.mapping
    if mapping is None:
        return value
    try:
        return reader.value(mapping, {"value": value, shape.name: value})
    except Unmapped:
        raise BadInput(shape.fact, f"{mapping.source} selects nothing of it") from None
    except WeftError as error:
        raise BadInput(shape.fact, error.message) from error


def metadata(step: StepNode, state: GoalState, index: int) -> dict[str, Any]:
    """What one item of a step is told about itself, by inner name."""
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


def _looked_at(step: StepShape, need: NeedShape, value: Value, part: bytes, env: Env) -> Any:
    """A value as JSON builtins; where nobody looks into it, as JSON."""
    sure = need.type is None or value.provider in need.trusted
    if sure and step.opaque:
        return Raw(part)
    found = decode_json(part)
    why = None if sure or need.type is None else types.unfit(need.type, found, part, env.check)
    if why is not None:
        raise BadInput(need.fact, why)
    return found


def seen_by_predicate(definition: StepDef, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs as a predicate sees them: what is absent is null. To jpath they are one object."""
    if definition.when is not None and definition.when.lang == "jpath":
        return {"value": inputs}
    needs = [(fact, need) for fact, need in definition.needs.items() if need.collect != "none" and not need.meta]
    return {name: inputs.get(name) for name in (inner_name(fact, need) for fact, need in needs)}
