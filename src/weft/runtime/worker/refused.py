"""A step whose attempt fails before its body begins."""

from __future__ import annotations

from typing import NoReturn

from weft.errors import Failure, WeftError
from weft.steps.task import Executor, PerformedElsewhere


class RefusedStep:
    """Fails with an error and its code. A retry cannot help."""

    __slots__ = ("_error", "name")

    def __init__(self, name: str, error: WeftError) -> None:
        self.name = name
        self._error = error

    async def perform(self, _given: bytes, _executor: Executor) -> NoReturn:
        error = self._error
        failure = Failure(type=type(error).__name__, message=error.message, code=error.code, step=self.name)
        raise PerformedElsewhere(failure, final=True)

    def is_final(self, _error: BaseException) -> bool:
        return True
