"""Read a pipeline: check every step before anything is performed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from weft.core.events import Effect
from weft.core.findings import did_you_mean
from weft.pipelines.faults import PipelineFailed, StepFault, pipeline_failed
from weft.pipelines.limits import STEPS_MAX
from weft.pipelines.steps import STEPS
from weft.pipelines.steps.base import PipelineStep
from weft.pipelines.steps.http import HttpRequestStep

_AT: Final = re.compile(r" - at `\$\.?(.*)`$")
_TEMPLATE: Final = "${"


class PlacedStep(msgspec.Struct, frozen=True):
    """A step, and where it stands in its pipeline."""

    index: int
    name: str
    step: PipelineStep


class Pipeline:
    """A pipeline that was checked. ``source`` is how it was written."""

    __slots__ = ("source", "steps")

    def __init__(self, source: Sequence[Any], steps: tuple[PlacedStep, ...]) -> None:
        self.source = source
        self.steps = steps

    @property
    def effect(self) -> Effect:
        """What a repetition does: pure, with GET idempotent, with POST irreversible."""
        methods = {placed.step.method for placed in self.steps if isinstance(placed.step, HttpRequestStep)}
        return "irreversible" if "POST" in methods else "idempotent" if methods else "pure"

    def references(self) -> list[str]:
        """Return the references to stored data that the steps read, each once."""
        return list(dict.fromkeys(found for placed in self.steps for found in placed.step.references()))

    def segments(self) -> Iterator[tuple[PlacedStep | None, tuple[PlacedStep, ...]]]:
        """Yield the steps between requests. Each segment but the first begins with the request before it."""
        request: PlacedStep | None = None
        part: list[PlacedStep] = []
        for placed in self.steps:
            if isinstance(placed.step, HttpRequestStep):
                if request is not None or part:
                    yield request, tuple(part)
                request, part = placed, []
            else:
                part.append(placed)
        yield request, tuple(part)


def read_pipeline(source: Any) -> Pipeline:
    """Read and check a pipeline. Raises PipelineFailed with the first thing that is wrong."""
    for fault in pipeline_faults(source):
        raise fault
    return Pipeline(source, read_steps(0, source))


def read_steps(first: int, source: Sequence[Any]) -> tuple[PlacedStep, ...]:
    """Read the steps of a pipeline, or a part of it that begins at this index. Raises PipelineFailed."""
    return tuple(_read_pipeline_step(index, step) for index, step in enumerate(source, first))


def pipeline_faults(source: Any, *, templates: bool = False) -> Iterator[PipelineFailed]:
    """Yield what is wrong with a pipeline, at most one fault a step.

    With ``templates``, the values of texts with ``${`` are not known yet, so only their names are checked.
    """
    if not isinstance(source, list | tuple):
        yield pipeline_failed(
            "bad_argument", "a pipeline is a list of steps.", hint='Write [{"step": "top_k", "k": 3}].'
        )
        return
    if not source:
        yield pipeline_failed("empty", "the pipeline has no steps.", hint=f"It has 1 to {STEPS_MAX}.")
    if len(source) > STEPS_MAX:
        yield pipeline_failed(
            "bad_argument", f"the pipeline has {len(source)} steps; the limit is {STEPS_MAX}.", index=STEPS_MAX
        )
        return
    for index, step in enumerate(source):
        try:
            if templates and _TEMPLATE in str(step):
                _check_names(index, step)
            else:
                _read_pipeline_step(index, step)
        except PipelineFailed as fault:
            yield fault


def _step_class(index: int, source: Any) -> type[PipelineStep]:
    """Return the class of a step. Raises PipelineFailed."""
    name = source.get("step") if isinstance(source, dict) else None
    if not isinstance(name, str):
        raise pipeline_failed(
            "unknown_step",
            'a step is an object with its name in "step".',
            index=index,
            hint=f"Steps: {', '.join(STEPS)}.",
        )
    kind = STEPS.get(name)
    if kind is None:
        near = did_you_mean(name, STEPS)
        raise pipeline_failed(
            "unknown_step", f'there is no step "{name[:60]}".', index=index, hint=near or f"Steps: {', '.join(STEPS)}."
        )
    return kind


def _read_pipeline_step(index: int, source: Any) -> PlacedStep:
    kind = _step_class(index, source)
    name = source["step"]
    _check_names(index, source)
    try:
        step = msgspec.convert({key: value for key, value in source.items() if key != "step"}, kind)
        step.check()
    except msgspec.ValidationError as error:
        raise StepFault("bad_argument", _readable_message(str(error))).at(index, name) from None
    except StepFault as fault:
        raise fault.at(index, name) from None
    return PlacedStep(index, name, step)


def _check_names(index: int, source: Any) -> None:
    """Check that all arguments are known, and none is missing. Raises PipelineFailed."""
    kind = _step_class(index, source)
    fields = {field.encode_name: field.required for field in msgspec.structs.fields(kind)}
    for name in source:
        if name != "step" and name not in fields:
            hint = did_you_mean(str(name), fields) or f"It takes {', '.join(fields)}."
            raise StepFault("bad_argument", f"there is no argument {str(name)[:60]}.", hint).at(index, source["step"])
    missing = [name for name, required in fields.items() if required and name not in source]
    if missing:
        raise StepFault("bad_argument", f"{', '.join(missing)} is missing.").at(index, source["step"])


def _readable_message(message: str) -> str:
    """Return what msgspec says with the path first: ``condition.op: invalid enum value``."""
    found = _AT.search(message)
    text = message[: found.start()] if found else message
    text = f"{text[0].lower()}{text[1:]}".rstrip(".")
    return f"{found[1]}: {text}." if found and found[1] else f"{text}."
