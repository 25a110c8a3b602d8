"""Why an agent ended without an answer."""

from __future__ import annotations

from weft.errors import Failure, StepFailed

TEXT_CHARS_MAX = 1_000
"""How much of the model's last text the failure keeps."""


class AgentFailed(StepFailed):
    """An agent came to no answer. The code says why; ``turn`` and ``text`` say how far it came.

    ``agent.turns``, ``agent.stuck``, ``agent.bad_output``, ``agent.bad_route``, ``agent.refused``, ``agent.context``.
    """

    code = "agent.failed"

    def __init__(
        self, message: str, *, code: str, turn: int = 0, text: str = "", hint: str = "", **context: object
    ) -> None:
        kept = text[:TEXT_CHARS_MAX]
        failure = Failure(type="AgentFailed", message=message, code=code, data=(message, turn, kept))
        super().__init__(message, failure=failure, hint=hint, code=code, **context)
        self.turn = turn
        """The turn in which it failed. The first is 0."""
        self.text = kept
        """The last text of the model."""
        self.args = (self.args[0], turn, kept)
