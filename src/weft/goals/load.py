"""Load steps: a file, text or a dict to definitions of the catalogue, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.core import values
from weft.core.findings import At, Finding, Problem
from weft.core.goal.checks import Languages
from weft.core.goal.definitions import StepDef
from weft.errors import BadValue, LimitExceeded, NotFound
from weft.goals.fold import fold_document
from weft.goals.policies import NoSteps, Steps
from weft.goals.problems import Source, StepProblems, refusal
from weft.graphs.text import BYTES_MAX, Text, Unreadable, read_text


class Loaded(msgspec.Struct, frozen=True):
    """The steps of a document, in its order, and where each one stands."""

    steps: list[StepDef]
    name: str
    places: dict[str, tuple[str, int]] = {}
    """Path and line of each step, for what is found out about it later."""

    def finding(self, step: str, found: Finding) -> Finding:
        """What is wrong with a step beside the others, told where the document has it."""
        path, line = self.places.get(step, ("", 0))
        whole = f"{path}.{found.path}" if path and found.path else path or found.path
        file = self.name if line else ""
        return msgspec.structs.replace(found, path=whole, line=line, file=file)


def load_steps(source: str | Path | Mapping[str, Any], languages: Languages, steps: Steps | None = None) -> Loaded:
    """The steps in a file, or in a dict of the same shape. ``steps``: what is known of registered ones.

    Raises:
        BadStep: with all findings in `context["findings"]`.
        NotFound: there is no such file.
    """
    known = steps or NoSteps()
    if isinstance(source, Mapping):
        return _load(Source(_plain(source)), languages, known)
    path = Path(source)
    try:
        raw = path.read_bytes()[: BYTES_MAX * 4 + 1]
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {error.strerror}.", code="goal.no_file") from None
    return parse_steps(raw, languages, file=path.name, steps=known)


def parse_steps(text: str | bytes, languages: Languages, *, file: str = "", steps: Steps | None = None) -> Loaded:
    """The steps in a text; `file` is what findings call it.

    Raises:
        BadStep: with all findings in `context["findings"]`.
    """
    try:
        document = Source(read_text(text if isinstance(text, str) else text.decode("utf-8-sig")), file)
    except UnicodeDecodeError:
        raise refusal([Finding("goal.yaml", "the file is not UTF-8.", file=file)], name=file) from None
    except Unreadable as error:
        finding = Finding(f"goal.{error.code}", error.message, line=error.line, file=file)
        raise refusal([finding], name=file) from None
    return _load(document, languages, steps or NoSteps())


def _plain(source: Mapping[str, Any]) -> Text:
    """A dict from Python as JSON data, so that nothing in it changes or surprises later."""
    try:
        data = values.decode(values.encode(dict(source), what="the document holds"))
    except (BadValue, LimitExceeded) as error:
        code = "goal.too_deep" if isinstance(error, LimitExceeded) else "goal.not_json"
        finding = Finding(code, error.message, str(error.context.get("path", "")), suggestion=error.hint)
        raise refusal([finding], name="the document") from None
    return Text(data, None)


def _load(source: Source, languages: Languages, steps: Steps) -> Loaded:
    problems = StepProblems()
    folded = fold_document(source.text.data, steps, languages, problems)
    name = source.file or "the document"
    if problems.found:
        raise refusal([source.finding(problem) for problem in problems.found], name=name)
    places = {one.definition.id: _whereabouts(source, one.at) for one in folded}
    return Loaded([one.definition for one in folded], name, places)


def _whereabouts(source: Source, at: At) -> tuple[str, int]:
    shown = source.finding(Problem("", at, ""))
    return shown.path, shown.line
