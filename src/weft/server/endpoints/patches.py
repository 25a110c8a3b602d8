"""Patches of runs: let a run follow another definition, undo that, and list its versions."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.core.run.patch_plan import PatchPlan
from weft.runtime.patches import PatchOptions, PatchService, RunVersion
from weft.server import views
from weft.server.request import ApiCall


class NewPatch(views.Form, frozen=True, kw_only=True):
    """A patch of a run. Its fields depend on the style of the run: docs/changing-runs.md."""

    patch: dict[str, Any]
    dry_run: bool = False
    """Only return the plan."""
    expect: views.Text = ""
    """The digest of the only plan that may be applied."""
    reason: views.Text = ""
    by: views.Text = ""
    """Who asks, if the caller is not identified."""


class UndoPatch(views.Form, frozen=True, kw_only=True):
    """Undo the last patch of a run, or take back the last undo."""

    redo: bool = False
    ends: bool = False
    """Whether the undo may complete a goal run."""
    dry_run: bool = False
    expect: views.Text = ""
    reason: views.Text = ""
    by: views.Text = ""


class RunVersions(msgspec.Struct, frozen=True):
    """The versions that a run has followed, oldest first."""

    versions: list[RunVersion]


async def patch(call: ApiCall) -> PatchPlan:
    """Patch a run, or return the plan of a patch."""
    asked = call.body_as(NewPatch)
    return await PatchService(call.service).patch(call.parameters["id"], asked.patch, _options(call, asked))


async def undo(call: ApiCall) -> PatchPlan:
    """Undo the last patch of a run."""
    asked = call.body_as(UndoPatch)
    options, patches = _options(call, asked), PatchService(call.service)
    return await patches.undo(call.parameters["id"], options, redo=asked.redo, ends=asked.ends)


async def versions(call: ApiCall) -> RunVersions:
    """Return the versions that a run has followed."""
    return RunVersions(await PatchService(call.service).versions(call.parameters["id"]))


def _options(call: ApiCall, asked: NewPatch | UndoPatch) -> PatchOptions:
    by = asked.by if call.identity.groups is None else call.identity.subject
    return PatchOptions(by=by, reason=asked.reason, expect=asked.expect, dry_run=asked.dry_run, key=call.key)
