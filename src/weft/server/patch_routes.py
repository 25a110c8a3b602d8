"""The routes of patches."""

from __future__ import annotations

from weft.core.run.patch_plan import PatchPlan
from weft.errors import BadGraph, BadPatch, LimitExceeded, NotFound, PatchRefused, Refused, RunFinished, StaleBase
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
        errors=(NotFound, BadPatch, BadGraph, LimitExceeded, PatchRefused, StaleBase, Refused, RunFinished),
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
        errors=(NotFound, BadPatch, PatchRefused, Refused, RunFinished),
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
