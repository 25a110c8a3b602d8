"""What an agent gives: its answer, why it stopped, and what that took."""

from __future__ import annotations

from decimal import Decimal
from typing import Generic, Literal, TypeVar

import msgspec

R = TypeVar("R")

Stopped = Literal["done", "turns", "budget"]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of an agent used, with the runs below it: tokens, calls and money."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    calls: int = 0
    """Calls of models."""
    tools: int = 0
    """Calls of tools."""
    money: Decimal | None = None
    """None if a model has no prices."""
    currency: str = ""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a run, as the model made it."""

    name: str
    arguments: str
    """As the model wrote them: JSON, if all is well. Long ones are cut."""
    ok: bool
    """Whether it gave a result: it was possible, permitted and did not fail."""
    turn: int


class Reply(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The answer of an agent."""

    output: R
    stopped: Stopped = "done"
    """``done``, or what was used up: ``turns`` or ``budget``."""
    turns: int = 1
    usage: Usage = Usage()
    model: str = ""
    """The provider's name of the model that answered last."""
    conversation: str = ""
    """The whole conversation, for ``history=`` of a later call."""
    tool_calls: list[ToolCall] = []
