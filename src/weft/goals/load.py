"""Load steps: read a file, a text or a dict into step definitions, or report all of its problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.core import values
from weft.core.findings import At, Finding, Problem
from weft.core.goal.checks import Languages
from weft.core.goal.definitions import StepDef
from weft.documents.source import DocumentSource, read_dict, read_file, read_source
from weft.goals.fold import STEP_DOCUMENT, fold_document
from weft.goals.policies import NoSteps, Steps


class LoadedSteps(msgspec.Struct, frozen=True):
    """The steps of a document, in its order, and the location of each one."""

    steps: list[StepDef]
    name: str
    places: dict[str, tuple[str, int]] = {}
    """The path and line of each step, for later findings of the catalogue."""

    def finding(self, step: str, found: Finding) -> Finding:
        """Add the path and line of a step to a finding of the catalogue."""
        path, line = self.places.get(step, ("", 0))
        whole = f"{path}.{found.path}" if path and found.path else path or found.path
        file = self.name if line else ""
        return msgspec.structs.replace(found, path=whole, line=line, file=file)


def load_steps(
    source: str | Path | Mapping[str, Any],
    languages: Languages,
    steps: Steps | None = None,
    give_way: Callable[[], None] = lambda: None,
) -> LoadedSteps:
    """Load the steps in a file, or in a dict of the same shape. ``steps`` describes the registered steps.

    ``give_way`` is called between any two steps, so that a thread that loads thousands can pause for others.

    Raises:
        BadStep: the document is not valid; ``context["findings"]`` lists all problems.
        NotFound: there is no such file.
    """
    document = (
        read_dict(source, STEP_DOCUMENT, encode=values.encode)
        if isinstance(source, Mapping)
        else read_file(Path(source), STEP_DOCUMENT)
    )
    return _load_source(document, languages, steps or NoSteps(), give_way)


def parse_steps(text: str | bytes, languages: Languages, *, file: str = "", steps: Steps | None = None) -> LoadedSteps:
    """Load the steps in a text. ``file`` is its name in findings.

    Raises:
        BadStep: the document is not valid; ``context["findings"]`` lists all problems.
    """
    return _load_source(read_source(text, file, STEP_DOCUMENT), languages, steps or NoSteps())


def _load_source(
    source: DocumentSource, languages: Languages, steps: Steps, give_way: Callable[[], None] = lambda: None
) -> LoadedSteps:
    problems = STEP_DOCUMENT.new_problems()
    folded = fold_document(source.data, steps, languages, problems, give_way)
    if problems.entries:
        raise source.refusal([source.finding(problem) for problem in problems.entries])
    places = {step.definition.id: _position_of(source, step.at) for step in folded}
    return LoadedSteps([step.definition for step in folded], source.file or "the document", places)


def _position_of(source: DocumentSource, at: At) -> tuple[str, int]:
    finding = source.finding(Problem("", at, ""))
    return finding.path, finding.line
