"""The explanation of a run, in sentences and as data."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from weft.observe.diagnosis import Diagnosis, Progress


class ExplainedAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would unblock a run. ``kind`` says which of the other fields are set.

    ``answer`` a question, ``send`` a message, ``open`` a child run, ``withdraw`` a patch, ``resume`` or ``retry`` the
    run, ``start_worker``: run a program that has the step or the workflow.
    """

    kind: Literal["answer", "send", "open", "withdraw", "resume", "retry", "start_worker"]
    approval: str = ""
    """The id of the question, as the inbox has it."""
    names: list[str] = []
    """The names of the messages; if there are none, any message."""
    run: str = ""
    number: int = 0
    queue: str = ""
    """The queue in which the work waits; empty if it waits for a host of the run."""
    workflow: str = ""


class ExplainedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence, with the parts of the picture that it is about."""

    text: str
    seq: int = 0
    """The number of the event; 0 if the sentence is about none."""
    boxes: list[str] = []
    arrows: list[str] = []


class ExplainedSection(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences with a heading: the path that was taken, what joins still lack, what did not run."""

    name: Literal["path", "joins", "skipped"]
    heading: str
    lines: list[ExplainedLine]


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a run waits for, described in words."""

    kind: str
    location: str
    what: str
    since: datetime
    until: datetime | None = None
    unblock: str = ""
    box: str = ""
    """The box of the picture, and below the number of the place; 0 if it has none."""
    number: int = 0
    action: ExplainedAction | None = None
    """What would unblock it; None if it continues by itself."""


class StyleSentences(msgspec.Struct, frozen=True):
    """The sentences that depend on the style of a run. ``Explanation`` describes the fields."""

    path: list[ExplainedLine] = []
    skipped: list[ExplainedLine] = []
    joins: list[ExplainedLine] = []


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run is not done yet."""

    run: str
    workflow: str
    status: str
    summary: str
    waiting: list[Waiting]
    steps_done: int
    hint: str = ""
    path: list[str] = []
    """The path of a graph run with its reasons, the running and ended steps of a goal run, or the models that did not
    answer in the newest turns of an agent, in sentences."""
    skipped: list[str] = []
    """The nodes or steps that did not run, and why not."""
    joins: list[str] = []
    """What the joins of a graph, or the pending steps of a goal run, still wait for."""
    style: str = "code"
    progress: list[Progress] = []
    """The progress of maps, fan-outs and work items."""
    sections: list[ExplainedSection] = []
    """The sentences of ``joins``, ``path`` and ``skipped`` again, each with its boxes and arrows."""
    budget: list[str] = []
    """What is left of the budgets that the run spends from, who spent most, and how to raise them."""
    action: ExplainedAction | None = None
    """What would let the run as a whole go on, if something can be done."""
    code: str = ""
    """If the run cannot be read, the code of the error (``weft help CODE``)."""
    diagnosis: Diagnosis | None = None
    """The same as data, with locations and ids; None if the run cannot be read."""

    def __str__(self) -> str:
        lines = [f"{self.run} ({self.workflow}) is {self.status}: {self.summary}"]
        lines += [f"  {part}" for part in self.progress]
        for item in self.waiting:
            until = f", until {item.until:%Y-%m-%d %H:%M:%S}" if item.until is not None else ""
            lines.append(f"  {item.location}: {item.what} since {item.since:%Y-%m-%d %H:%M:%S}{until}")
            if item.unblock:
                lines.append(f"      {item.unblock}")
        lines += [f"  {sentence}" for sentence in (*self.joins, *self.path, *self.skipped, *self.budget)]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)
