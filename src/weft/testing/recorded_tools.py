"""Results of tools from recorded runs, by step and arguments, for worlds in which nothing is performed live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.core import events as e
from weft.core import values
from weft.core.unfold import ViewEvent
from weft.errors import Failure, UsageError
from weft.observe.event_parts import Unfolding
from weft.runtime.bundles.recorded import RecordedRun, read_recorded
from weft.steps.task import MODEL, PerformedElsewhere

Bundle = str | Path | Mapping[str, Any]
"""A file that ``weft export`` wrote, or what ``export_events`` returns."""


class RecordedTools:
    """The results of all steps in recorded runs, by step and arguments. Equal calls get their results in order."""

    def __init__(self, bundle: Bundle) -> None:
        """Read recorded runs. Raises UsageError, Corrupt."""
        self._results: dict[tuple[str, bytes], list[bytes | Failure]] = {}
        self._given: dict[tuple[str, int], int] = {}
        self._next: dict[tuple[str, bytes], int] = {}
        if isinstance(bundle, Mapping):
            runs = read_recorded(msgspec.json.encode(bundle), "The recorded run")
        else:
            try:
                runs = read_recorded(Path(bundle).read_bytes(), str(bundle))
            except OSError as error:
                raise UsageError(f"{bundle} cannot be read: {error.strerror}.") from error
        for run in runs:
            self._read(run)
        if not self._results:
            raise UsageError("The recorded runs have no results of steps.", hint="Export a run with its children.")

    def _read(self, run: RecordedRun) -> None:
        unfolding, tasks = Unfolding(), dict[int, tuple[str, bytes]]()
        for stored in run.events:
            for part in unfolding.add(stored):
                self._take(part.event, stored.seq, tasks, run.blobs)

    def _take(
        self, event: ViewEvent, seq: int, tasks: dict[int, tuple[str, bytes]], blobs: Mapping[str, bytes]
    ) -> None:
        match event:
            case e.TaskScheduled(step=step, inline=False) if step != MODEL:
                tasks[seq] = (step, _canonical(_load(bytes(event.input), blobs)))
            case e.TaskSucceeded(task=task, output=output) if task in tasks:
                self._results.setdefault(tasks[task], []).append(_load(bytes(output), blobs))
            case e.TaskFailed(task=task, failure=failure, retry_at=0) if task in tasks:
                self._results.setdefault(tasks[task], []).append(failure)

    def result(self, step: str, given: bytes, key: str) -> bytes:
        """Return the recorded result of a call. The same task gets the same result again.

        Raises UsageError if no such call was recorded, and the recorded failure if it failed.
        """
        call = (step, _canonical(given))
        found = self._results.get(call)
        if found is None:
            raise UsageError(
                f"{step} was not called with {values.preview_text(values.decode(given))} in the recorded runs, "
                "and nothing is performed live here.",
                hint=f"Fake it: world.fake({step!r}, ...)",
                code="usage.simulated",
            )
        place = (key, 0)
        if place not in self._given:
            self._given[place] = self._next.get(call, 0)
            self._next[call] = self._given[place] + 1
        result = found[min(self._given[place], len(found) - 1)]
        if isinstance(result, Failure):
            raise PerformedElsewhere(result, final=True)
        return result


def _load(raw: bytes, blobs: Mapping[str, bytes]) -> bytes:
    plain = values.inline_json(raw)
    return plain if plain is not None else blobs[values.parse_ref(raw).digest]


def _canonical(raw: bytes) -> bytes:
    """Return JSON in which the order of fields says nothing."""
    return msgspec.json.encode(msgspec.json.decode(raw), order="sorted")
