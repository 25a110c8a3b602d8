"""Definitions of catalogue steps: the facts they need and give, how they are performed, and their policies. Data only.

Needs and gives are keyed by the names of facts. The inner name of a need is used only in the inputs of the step.
Definitions are immutable and compare by value. A plan contains the definitions that it was made from.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from weft.core.events import DEFAULT_POLICY, Policy, UndoPlan
from weft.core.goal.types import Type, is_array, may_be_array

Role = Literal["required", "optional", "const"]
Collect = Literal["first", "last", "some", "all", "none"]
Language = Literal["cel", "jpath", "lua", "ale"]
INSIDE: frozenset[str] = frozenset({"cel", "jpath"})
"""The languages that are evaluated inside a decision. The runtime evaluates the others."""
METADATA = ("flow_id", "run_id", "step_id", "receipt_token", "key", "parent_flow_id")
"""What a step can receive about the run itself. ``flow_id`` equals ``run_id``, and ``receipt_token`` equals ``key``."""

COMPENSATE = ".compensate"
"""The suffix in the name of the undo of an HTTP step."""


class Script(msgspec.Struct, frozen=True):
    """An expression in CEL, jpath, Lua or Ale. A jpath expression can use only ``value``."""

    source: str
    lang: Language = "cel"


class Need(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One input of a step.

    ``deadline`` is in milliseconds, or "wait", or None if the step does not wait for the fact.
    """

    role: Role = "required"
    type: Type = None
    name: str = ""
    """The inner name. If empty, it is the name of the fact."""
    collect: Collect = "first"
    match: Script | None = None
    each: bool = False
    default: Any | msgspec.UnsetType = msgspec.UNSET
    deadline: int | Literal["wait"] | None = None
    value: Any | msgspec.UnsetType = msgspec.UNSET
    """The value, if the role is "const"."""
    meta: str = ""
    """The entry of METADATA to use as the value, if the role is "const"."""
    mapping: Script | None = None
    """Computes the input from the value of the fact, which it can use as ``value`` and under the inner name."""

    @property
    def is_gate(self) -> bool:
        return self.role == "required" and (self.match is not None or self.collect == "none")

    @property
    def is_list(self) -> bool:
        """Whether the step receives an array of values."""
        return self.collect in ("some", "all")

    @property
    def is_sure(self) -> bool:
        """Whether the step always receives a value for this need."""
        if self.role == "required":
            return self.collect != "none"
        return self.role == "const" or self.default is not msgspec.UNSET


class Give(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output of a step."""

    type: Type = None
    key: str = ""
    """The key in the raw result. If empty, it is the name of the fact."""
    whole: bool = False
    """Whether the value is the whole raw result."""
    mapping: Script | None = None
    """Computes the value from the raw result, which it can use as ``value``."""


def agent_gives(gives: dict[str, Give]) -> dict[str, Give]:
    """Return the outputs of a step that an agent performs: fields of its answer, or the whole answer."""
    found: dict[str, Give] = {}
    for fact, give in gives.items():
        place = "value.output" if give.whole else f"value.output.{give.key or fact}"
        mapping = give.mapping or Script(place)
        found[fact] = msgspec.structs.replace(give, key="", whole=False, mapping=mapping)
    return found


# --- ways to perform a step --------------------------------------------------------------------------------------


class StepWay(msgspec.Struct, frozen=True, tag_field="way", tag="step"):
    """A registered step."""

    step: str


class HttpWay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="way", tag="http"):
    """An HTTP request. With ``answer="later"``, the result arrives at a signed webhook."""

    url: str
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH"] = "POST"
    answer: Literal["now", "later"] = "now"
    body: Literal["envelope", "bare"] = "envelope"
    """With "bare", the body is the arguments, the response is the outputs, and metadata is only in headers."""
    webhook: Literal["signature", "url"] = "signature"
    """With "url", the address of the webhook contains its key, for services that cannot sign."""
    headers: dict[str, str] = {}
    health: str = ""
    compensate: str = ""
    """The URL that undoes a call; it receives a POST of ``{input, output}``."""


class ScriptWay(msgspec.Struct, frozen=True, tag_field="way", tag="script"):
    script: Script


class PipelineWay(msgspec.Struct, frozen=True, tag_field="way", tag="pipeline"):
    """A pipeline: small steps over a table. Its input is the need that is called ``data`` inside, or the only need."""

    pipeline: list[Any]


class GoalWay(msgspec.Struct, frozen=True, tag_field="way", tag="goal"):
    """A child run that achieves these goals. It is given the inputs of this step."""

    goals: list[str]


class WorkflowWay(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="way", tag="workflow"):
    """A child run of a workflow, code or graph."""

    workflow: str
    version: str = ""


class AskWay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="way", tag="ask"):
    """A question to people. The answer (``approved by reason form at``) is the raw result."""

    title: str
    form: dict[str, Any] | None = None
    of: list[str] = []
    quorum: str | int = "any"
    on_timeout: Literal["fail", "approve", "reject", "escalate"] = "fail"
    escalate: list[str] = []
    four_eyes: bool = False
    remind_ms: int = 0


Way = StepWay | HttpWay | ScriptWay | PipelineWay | GoalWay | WorkflowWay | AskWay


class Cache(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reuse successful results for equal inputs of the same definition. ``ttl_ms`` 0 means forever."""

    ttl_ms: int = 0


class StepDef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step of the catalogue."""

    id: str
    way: Way
    needs: dict[str, Need] = {}
    gives: dict[str, Give] = {}
    when: Script | None = None
    policy: Policy = DEFAULT_POLICY
    width: int = 1
    cache: Cache | None = None
    undo: UndoPlan | None = None
    title: str = ""
    labels: dict[str, str] = {}

    @property
    def is_async(self) -> bool:
        """Whether the result arrives later, from outside."""
        return isinstance(self.way, HttpWay) and self.way.answer == "later"

    @property
    def drains(self) -> bool:
        """Whether work in progress must not be interrupted."""
        return self.undo is not None or self.policy.effect == "irreversible"

    def scripts(self) -> Iterator[tuple[tuple[str, ...], Script, tuple[str, ...]]]:
        """Yield every script of the step: its place in the definition, the script, and the names it may use."""
        inner = tuple(sorted(inner_name(fact, need) for fact, need in self.needs.items() if need.collect != "none"))
        if self.when is not None:
            hidden = {inner_name(fact, need) for fact, need in self.needs.items() if need.meta}
            yield ("when",), self.when, tuple(name for name in inner if name not in hidden)
        for fact, need in self.needs.items():
            if need.match is not None:
                yield ("needs", fact, "match"), need.match, ("value",)
            if need.mapping is not None:
                yield ("needs", fact, "mapping"), need.mapping, tuple(sorted({"value", inner_name(fact, need)}))
        for fact, give in self.gives.items():
            if give.mapping is not None:
                yield ("gives", fact, "mapping"), give.mapping, ("value",)
        if isinstance(self.way, ScriptWay):
            yield ("script",), self.way.script, inner


def inner_name(fact: str, need: Need) -> str:
    """Return the name under which the work receives a need."""
    return need.name or fact


def give_key(fact: str, give: Give) -> str:
    """Return the key of a give in the raw result."""
    return give.key or fact


def declared_types(definition: StepDef) -> Iterator[tuple[str, Type]]:
    """Yield every fact of the step with its declared type. A const declares nothing.

    A step with an ``each`` need gives lists of items.
    """
    split = []
    for fact, need in definition.needs.items():
        if need.role != "const":
            yield fact, need.type
        if need.each:
            split.append(need.type)
    listed = "array" if any(is_array(declared) for declared in split) else "any"
    for fact, give in definition.gives.items():
        yield fact, listed if split else give.type


def may_be_split(need: Need) -> bool:
    """Return whether a need can be split into items, because its value may be an array."""
    return need.is_list or need.mapping is not None or may_be_array(need.type)


_encode = msgspec.json.Encoder(order="deterministic").encode


def definition_digest(definition: StepDef) -> str:
    """Return a digest of a definition. Equal definitions have equal digests on every machine."""
    return blake2b(_encode(definition), digest_size=12).hexdigest()


def work_digest(definition: StepDef) -> str:
    """Return a digest of the parts that determine a result: not the id, title, labels, policy, cache and width."""
    bare = msgspec.structs.replace(definition, id="", title="", labels={}, policy=DEFAULT_POLICY, cache=None, width=1)
    return definition_digest(bare)
