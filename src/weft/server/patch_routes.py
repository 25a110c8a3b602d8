"""The routes of patches."""

from __future__ import annotations

from weft.core.run.patch_plan import PatchPlan
from weft.errors import (
    BadGraph,
    BadPatch,
    LimitExceeded,
    NotFound,
    PatchRefused,
    Refused,
    RunFinished,
    StaleBase,
    UsageError,
)
from weft.runtime.asked_patches import PatchRequest
from weft.server.endpoints import patches
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_RUN = f"{API}/runs/{{id}}"

PATCHES = (
    ApiRoute(
        name="patchRun",
        method="POST",
        path=f"{_RUN}/patch",
        summary="Let a run follow another definition from where it stands, or return the plan of that",
        endpoint=patches.patch,
        scope=AccessScope.OPERATE,
        body=patches.NewPatch,
        answer=PatchPlan,
        statuses=(200, 202),
        errors=(NotFound, BadPatch, UsageError, BadGraph, LimitExceeded, PatchRefused, StaleBase, Refused, RunFinished),
    ),
    ApiRoute(
        name="undoPatch",
        method="POST",
        path=f"{_RUN}/patch/undo",
        summary="Undo the last patch of a run, or take back the last undo",
        endpoint=patches.undo,
        scope=AccessScope.OPERATE,
        body=patches.UndoPatch,
        answer=PatchPlan,
        statuses=(200, 202),
        errors=(NotFound, BadPatch, UsageError, PatchRefused, Refused, RunFinished),
    ),
    ApiRoute(
        name="getPatchRequests",
        method="GET",
        path=f"{_RUN}/patch",
        summary="The patches of a run that had to wait or to be reviewed, and what became of them",
        endpoint=patches.list_requests,
        scope=AccessScope.READ,
        answer=patches.PatchRequestList,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="getPatchRequest",
        method="GET",
        path=f"{_RUN}/patch/{{asked}}",
        summary="A patch that had to wait or to be reviewed, and what became of it",
        endpoint=patches.find_request,
        scope=AccessScope.READ,
        answer=PatchRequest,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="withdrawPatch",
        method="DELETE",
        path=f"{_RUN}/patch/{{asked}}",
        summary="Drop a patch that waits or is being reviewed",
        endpoint=patches.withdraw,
        scope=AccessScope.OPERATE,
        body=patches.WithdrawnPatch,
        answer=PatchRequest,
        errors=(NotFound, Refused, RunFinished),
    ),
    ApiRoute(
        name="getRunVersions",
        method="GET",
        path=f"{_RUN}/versions",
        summary="The versions that a run has followed, oldest first",
        endpoint=patches.versions,
        scope=AccessScope.READ,
        answer=patches.RunVersions,
        errors=(NotFound,),
    ),
)
