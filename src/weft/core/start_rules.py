"""The rules about starts that a workflow can have: one open run per key, a start after quiet, one run for many inputs.

A rule is stored under the name of its workflow, so that every process that starts runs obeys it.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from weft.core.events import ABSENT

RuleKind = Literal["singleton", "debounce", "batch"]
Then = Literal["attach", "refuse", "replace"]
THENS: tuple[Then, ...] = ("attach", "refuse", "replace")

SINGLETON = "singleton:"
"""How the slots of singletons begin. At most one run that has begun and is not over has such a slot."""
SINGLETON_END = "singleton;"
"""Follows all slots of singletons."""
DEBOUNCE = "debounce:"
"""How the slots of debounced runs begin. The newest start of such a run that has not begun has replaced the others."""
BATCH = "batch:"
"""How the slots of batches begin. Each start of such a run that has not begun brings inputs."""


class StartRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule as the store has it."""

    kind: RuleKind
    key: str = ""
    """CEL over the input of a start, or over each item of a batch. Empty: all starts have the same key."""
    key_in_code: bool = False
    """The key is a function, which only processes with the code of the workflow can call."""
    defaults: Raw = ABSENT
    """The default values of the workflow's parameters, which a start may leave out."""
    then: Then = "attach"
    """Singletons: what happens to a start while a run with its key is open."""
    quiet_ms: int = 0
    at_most_ms: int = 0
    """Debounced starts: how long the first start waits at most; 0 for no limit."""
    size: int = 0
    wait_ms: int = 0
    items: str = ""
    """Batches: the name of the parameter, which is a list."""

    def wait_of(self, items: int) -> int:
        """Return how long the first start for a key waits, in milliseconds."""
        match self.kind:
            case "debounce":
                return self.quiet_ms
            case "batch":
                return self.wait_ms if items < self.size else 0
        return 0


_decode = msgspec.json.Decoder(StartRule).decode
_encode = msgspec.json.Encoder().encode


def encode_rule(rule: StartRule) -> bytes:
    """Encode a rule for the store."""
    return _encode(rule)


def decode_rule(body: bytes) -> StartRule:
    """Decode a rule from the store."""
    return _decode(body)


def slot_of(rule: StartRule, workflow: str, key: str, prefix: str = "") -> str:
    """Return the name under which the runs with this key are found. ``prefix`` is that of the tenant's ids."""
    return f"{rule.kind}:{prefix}{workflow}:{key}"


def kind_of_slot(slot: str) -> RuleKind:
    """Return the kind of the rule that gave a run its slot."""
    kind: RuleKind = slot.partition(":")[0]  # type: ignore[assignment]  # slots are only made above
    return kind


def key_of_slot(slot: str) -> str:
    """Return the key of a slot. Names of workflows and tenants have no colon."""
    return slot.split(":", 2)[2]
