"""What a style adds to the views of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from weft.core.graph.tokens import DeadLetter
from weft.core.machine import Machine
from weft.observe.diagnosis import Diagnosis, PendingWait, Progress
from weft.observe.explanation import StyleSentences
from weft.observe.live_finding import LiveFinding, LiveRun
from weft.observe.operations import Keep, NoOperations, NoteChange, Operation, StyleOperations
from weft.observe.pictures import Picture
from weft.observe.places import RunPlace
from weft.observe.plan_tree import PlanTree
from weft.observe.run_moment import PictureDrawer, RunMoment
from weft.ports.store import RunRow
from weft.runtime.service import RunService

M = TypeVar("M", bound=Machine)
SectionName = Literal["input", "state", "facts", "open", "loops", "messages", "attributes", "schedule", "output"]
Held = Mapping[SectionName, Mapping[str, bytes]]
"""The values that a run holds, by section and name, as the log has them: some are references to blobs."""


class StyleViews(Generic[M]):
    """The views of one style. A style overrides the methods for the views that it has."""

    has_nodes = True
    """Whether a location begins with the name of a node or a step."""
    is_code = False
    """Whether the program is in the code of the hosts, not in the store."""
    draws_state = True
    """Whether pictures show the state of a run. If not, they are drawn from its places alone."""
    refers_to_results = False
    """Whether records refer to the results in other records."""
    joins_heading = "joins"
    path_heading = "path"

    def waits(self, machine: M, now: int) -> Iterable[PendingWait]:
        """Return what a run waits for besides tasks, messages, questions and child runs."""
        return ()

    def progress(self, machine: M) -> Iterable[Progress]:
        """Return the progress of the parts of a run that have many items."""
        return ()

    def operations(self, operations: dict[int, Operation], keep: Keep, note_change: NoteChange) -> StyleOperations:
        """Return the operations that only this style has, for the history of a run."""
        return NoOperations()

    async def details(self, service: RunService, row: RunRow, machine: M) -> dict[str, Any]:
        """Return the fields of the diagnosis that only this style has."""
        return {}

    def sentences(self, diagnosis: Diagnosis) -> StyleSentences:
        """Describe the fields that ``details`` returns, in sentences."""
        return StyleSentences()

    async def picture(self, service: RunService, row: RunRow) -> Picture | None:
        """Return the picture of a run; None if it has none. Raises NotFound, RunUnreadable."""
        return None

    def drawer(self) -> PictureDrawer:
        """Return a drawer for one run."""
        return self

    def add_places(self, places: Sequence[RunPlace], drops: int, seq: int) -> None:
        """Do nothing, because the picture is drawn from the state of the run."""

    def draw(self, machine: M, moment: RunMoment) -> Picture | None:
        """Return the picture of a run as it stands in ``machine``; None if it has none."""
        return None

    async def overview(self, service: RunService, row: RunRow) -> Picture | PlanTree | None:
        """Return what a terminal shows instead of the list of operations; None if it shows the list."""
        return None

    async def result(self, service: RunService, row: RunRow, raw: bytes) -> bytes:
        """Return the part of a result that is shown to people."""
        return raw

    def aligned_place(self, machine: M, number: int, place: str) -> str:
        """Return the place of an entry that was just opened, as it is called in every run of the workflow."""
        return place

    def facts(self, machine: M) -> Mapping[str, bytes]:
        """Return the facts of a run, by name, as the log has their values."""
        return {}

    def held(self, machine: M) -> Held:
        """Return the values that only runs of this style hold, by section (``held_values``) and name."""
        return {}

    def dead_letters(self, machine: M) -> Mapping[str, DeadLetter]:
        """Return the dead letters of a run, by token."""
        return {}

    async def check_live(self, run: LiveRun, machine: M) -> LiveFinding:
        """Check an open run, folded from its whole log, against the code of this process. Uses the machine up."""
        return LiveFinding()

    async def is_stored(self, service: RunService, row: RunRow) -> bool:
        """Return whether any host can continue the run, because the store has its whole program."""
        return False

    def version_advice(self, version: str) -> str:
        """Return advice for a run whose version no host offers."""
        return (
            f'Keep the function of this version until its runs have ended: @app.workflow(version="{version}"), '
            "in addition to the newer one. Or run the older program, or bring the run to a version that is hosted: "
            "weft patch RUN --to VERSION."
        )
