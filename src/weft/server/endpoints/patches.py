"""Patches of runs: let a run follow another definition, undo that, and list its versions."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import Meta

from weft.core.durations import duration_ms
from weft.core.run.asked_patches import DIGITS_MAX
from weft.core.run.patch_plan import PatchPlan
from weft.errors import NotFound
from weft.runtime.asked_patches import PatchRequest, PatchRequests
from weft.runtime.patches import PatchOptions, PatchService
from weft.runtime.run_versions import RunVersion
from weft.server import views
from weft.server.request import ApiCall, ApiReply
from weft.server.router import API


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
    wait: views.Text = ""
    """If the patch is not allowed now, try it again after every event, for that long: ``2h``."""
    at: views.Text = ""
    """Wait until all tokens of the run are at this node."""
    review: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)
    """Who must agree before it is applied: ``team:ops``. One of them, and not the caller."""


class UndoPatch(views.Form, frozen=True, kw_only=True):
    """Undo the last patch of a run, or take back the last undo."""

    redo: bool = False
    ends: bool = False
    """Whether the undo may complete a goal run."""
    dry_run: bool = False
    expect: views.Text = ""
    reason: views.Text = ""
    by: views.Text = ""
    wait: views.Text = ""
    at: views.Text = ""
    review: Annotated[list[views.Name], Meta(max_length=100)] = msgspec.field(default_factory=list)


class WithdrawnPatch(views.Form, frozen=True, kw_only=True):
    """Who drops a patch that waits, and why."""

    reason: views.Text = ""
    by: views.Text = ""


class PatchRequestList(msgspec.Struct, frozen=True):
    """The patches of a run that had to wait or to be reviewed, oldest first."""

    patches: list[PatchRequest]


class RunVersions(msgspec.Struct, frozen=True):
    """The versions that a run has followed, oldest first."""

    versions: list[RunVersion]


async def patch(call: ApiCall) -> ApiReply:
    """Patch a run, or return the plan of a patch. The status is 202 if it waits or is reviewed."""
    asked = call.body_as(NewPatch)
    plan = await PatchService(call.service).patch(call.parameters["id"], asked.patch, _options(call, asked))
    return _reply(call, plan, dry_run=asked.dry_run)


async def undo(call: ApiCall) -> ApiReply:
    """Undo the last patch of a run. The status is 202 if that waits or is reviewed."""
    asked = call.body_as(UndoPatch)
    options, patches = _options(call, asked), PatchService(call.service)
    plan = await patches.undo(call.parameters["id"], options, redo=asked.redo, ends=asked.ends)
    return _reply(call, plan, dry_run=asked.dry_run)


def _reply(call: ApiCall, plan: PatchPlan, *, dry_run: bool) -> ApiReply:
    if plan.applied or plan.unchanged or dry_run:
        return ApiReply(plan)
    where = f"{call.root}{API}/runs/{quote(call.parameters['id'], safe='')}/patch"
    return ApiReply(plan, 202, {"location": f"{where}/{plan.asked}" if plan.asked else where})


async def list_requests(call: ApiCall) -> PatchRequestList:
    """Return the patches of a run that had to wait or to be reviewed."""
    return PatchRequestList(await PatchRequests(call.service).all(call.parameters["id"]))


async def find_request(call: ApiCall) -> PatchRequest:
    """Return one of them, and what became of it."""
    return await PatchRequests(call.service).find(call.parameters["id"], _patch_number(call))


async def withdraw(call: ApiCall) -> PatchRequest:
    """Drop a patch that waits or is reviewed."""
    asked = call.body_as(WithdrawnPatch)
    return await PatchRequests(call.service).withdraw(
        call.parameters["id"], _patch_number(call), by=call.by(asked.by), reason=asked.reason, key=call.key
    )


def _patch_number(call: ApiCall) -> int:
    word = call.parameters["asked"]
    if not (word.isascii() and word.isdecimal() and len(word) <= DIGITS_MAX):
        raise NotFound(f"{word[:60]!r} is not the number of a patch.")
    return int(word)


async def versions(call: ApiCall) -> RunVersions:
    """Return the versions that a run has followed."""
    return RunVersions(await PatchService(call.service).versions(call.parameters["id"]))


def _options(call: ApiCall, asked: NewPatch | UndoPatch) -> PatchOptions:
    return PatchOptions(
        by=call.by(asked.by),
        reason=asked.reason,
        expect=asked.expect,
        dry_run=asked.dry_run,
        key=call.key,
        wait_ms=duration_ms(asked.wait) if asked.wait else 0,
        at=asked.at,
        review=asked.review,
        roles=call.roles,
    )
