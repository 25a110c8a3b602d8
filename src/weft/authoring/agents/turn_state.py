"""What one turn of an agent passes to the next."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.agents.models.estimate import correct_chars_per_token, messages_chars, tokens_of
from weft.agents.models.step import ModelAnswer
from weft.authoring.agents.reply import Usage
from weft.authoring.agents.usage import with_answer
from weft.ports.models import ModelMessage, TextPart


class TurnState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one turn passes to the next. The conversation itself is in blobs."""

    add: tuple[ModelMessage, ...]
    """What came since the last link of the conversation."""
    head: str = ""
    turn: int = 0
    turns: int
    """How many turns there may be. People may allow more."""
    misfits: int = 0
    """How many turns in a row were repairs."""
    same: int = 0
    """How many turns in a row had the calls and results of the turn before."""
    last: str = ""
    """The digest of the calls and results of the last turn."""
    is_tainted: bool = False
    """The run has taken in words of strangers."""
    used: dict[str, int] = {}
    """How often tools with a limit were called."""
    last_ref: str = ""
    """The reference to the newest result that is kept."""
    usage: Usage = Usage()
    """What the calls of the run itself used."""
    called: int = -1
    """The turn in which the tools were called whose results are in ``add``, as conversations number turns."""
    has_children: bool = False
    """Whether tools were performed as child runs."""
    chars: int = 0
    """How many characters the conversation up to ``head`` has."""
    tokens: int = 0
    """How many tokens that is by the provider's last count; 0 if it was not counted."""
    model: str = ""

    def after(self, answer: ModelAnswer) -> TurnState:
        """Return the state after an answer, with nothing to add yet."""
        said = len(answer.text) + sum(len(call.name) + len(call.arguments) for call in answer.calls)
        return msgspec.structs.replace(
            self,
            add=(),
            called=-1,
            head=answer.head,
            usage=with_answer(self.usage, answer),
            chars=self.chars + messages_chars(self.add) + said,
            tokens=answer.usage.input + answer.usage.output,
            model=answer.model,
        )

    def total_chars(self) -> int:
        """Return how many characters the next request has."""
        return self.chars + messages_chars(self.add)

    def chars_per_token(self, common: int) -> float:
        """Return how many characters a token has, by the provider's last count.

        ``common``: how many characters every request has beside its conversation, which the provider counts too.
        """
        return correct_chars_per_token(self.chars + common, self.tokens)

    def next_tokens(self, common: int) -> int:
        """Return about how many tokens the next request has. ``common`` as in ``chars_per_token``."""
        ratio = self.chars_per_token(common)
        return (self.tokens or tokens_of(self.chars + common, ratio)) + tokens_of(messages_chars(self.add), ratio)


def first_messages(system: str, prompt: Any) -> tuple[ModelMessage, ...]:
    """Return the messages that a conversation begins with."""
    parts = (TextPart(prompt),) if isinstance(prompt, str) else tuple(prompt)
    return (*system_message(system), ModelMessage(role="user", parts=parts))


def system_message(system: str) -> tuple[ModelMessage, ...]:
    """Return the system text as a message; none if it is empty."""
    return (ModelMessage(role="system", parts=(TextPart(system),)),) if system else ()


def user_message(text: str) -> ModelMessage:
    """Return what the loop itself tells the model."""
    return ModelMessage(role="user", parts=(TextPart(text),))
