"""Prepare the patch of a goal run: check its form, load its steps, and add the steps that are registered now."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Raw

from weft.core.findings import Finding
from weft.core.goal.definitions import StepDef
from weft.core.goal.patch.request import GoalRequest
from weft.core.run.state import State
from weft.errors import BadPatch
from weft.ports.store import RunRow
from weft.runtime.goal_language import GOAL_LANGUAGES
from weft.runtime.host_steps import registered_now
from weft.runtime.patch_parts import PatchParts, PreparedPatch, wrong_form

FIELDS = ("given", "goals", "steps", "catalogue", "replan")


class GoalNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The goals to add to a run and to remove from it."""

    add: list[str] = []
    remove: list[str] = []


class GoalPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch of a goal run as it is written."""

    weft: Literal["patch/1"] = "patch/1"
    given: dict[str, Raw] = {}
    goals: GoalNames = GoalNames()
    steps: dict[str, Any] = {}
    catalogue: Literal["plan", "now"] = "plan"
    replan: bool = False
    ends: bool = False
    reason: str = ""


_patch: msgspec.json.Decoder[GoalPatch] = msgspec.json.Decoder(GoalPatch)
_encode = msgspec.json.Encoder().encode


async def prepare_goal_patch(parts: PatchParts, row: RunRow, patch: bytes) -> PreparedPatch:
    """Read a patch of a goal run. Raises BadPatch, BadStep, Refused. Writes nothing."""
    form = read_goal_patch(patch)
    request = GoalRequest(
        given=form.given,
        add=form.goals.add,
        remove=form.goals.remove,
        steps=_load_definitions(parts, form.steps),
        catalogue=form.catalogue,
        replan=form.replan,
        ends=form.ends,
        registered=await _registered_steps(parts) if form.catalogue == "now" else [],
    )
    return PreparedPatch(base=row.version, version=row.version, reason=form.reason, prepared=Raw(_encode(request)))


async def prepare_goal_undo(_: PatchParts, row: RunRow, _state: State, _rev: int) -> PreparedPatch:
    """Prepare the undo of a patch. The run knows its earlier goals and steps."""
    return PreparedPatch(base=row.version, version=row.version)


def let_undo_end_run(prepared: PreparedPatch) -> PreparedPatch:
    """Let the undo of a patch complete the run."""
    return msgspec.structs.replace(prepared, prepared=Raw(_encode(GoalRequest(ends=True))))


def read_goal_patch(patch: bytes) -> GoalPatch:
    """Read a patch and check its form. Raises BadPatch."""
    try:
        form = _patch.decode(patch)
    except msgspec.ValidationError as error:
        raise _bad_patch(wrong_form(error)) from None
    if "" in form.given:
        raise _bad_patch("a fact needs a name", "given")
    return form


def _bad_patch(message: str, path: str = "") -> BadPatch:
    hint = f"A patch of a goal run has {', '.join(FIELDS)} and ends."
    return BadPatch(
        f"The patch is not valid: {message}.", hint=hint, findings=[Finding("patch.invalid", f"{message}.", path)]
    )


def _load_definitions(parts: PatchParts, steps: dict[str, Any]) -> dict[str, StepDef]:
    """Return the definitions in a patch. Raises BadStep with all findings."""
    if not steps:
        return {}
    from weft.goals import load_steps  # noqa: PLC0415 - slow to import, and only needed for documents

    return {step.id: step for step in load_steps({"steps": steps}, GOAL_LANGUAGES, parts.catalogue).steps}


async def _registered_steps(parts: PatchParts) -> list[StepDef]:
    """Return the steps that are registered now, as the host in this process knows them, or else as the store does."""
    if parts.catalogue is not None:
        return list(parts.catalogue.planned())
    return await registered_now(parts.definitions, parts.hosts, parts.clock)
