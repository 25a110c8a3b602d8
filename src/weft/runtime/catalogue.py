"""What a host can do: the steps it can perform and the programs it can run, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weft.runtime.code_driver import Program
from weft.steps.base import StepBody


class Catalogue(Protocol):
    """Read at every hand-out, so that what is registered later is found too."""

    def step(self, name: str) -> StepBody | None: ...

    def steps(self) -> Sequence[str]:
        """The names of all steps it can perform."""
        ...

    def queues(self) -> Sequence[str]:
        """The queues it works for."""
        ...

    def program(self, workflow: str, version: str) -> Program | None: ...

    def programs(self) -> Sequence[tuple[str, str]]:
        """All (workflow, version) pairs: what this host may claim."""
        ...
