"""The routes of forks."""

from __future__ import annotations

from weft.errors import IdTaken, LimitExceeded, NotFound, Refused, RunUnreadable, UsageError
from weft.observe.dry_runs import DryRun
from weft.observe.pictures.drawn import DrawnPicture
from weft.runtime.forks import Forked
from weft.server.endpoints import forks
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

FORKS = (
    ApiRoute(
        name="forkRun",
        method="POST",
        path=f"{API}/runs/{{id}}/fork",
        summary="Make a new run that shares the past of another one up to a point",
        endpoint=forks.fork,
        scope=AccessScope.OPERATE,
        body=forks.NewFork,
        answer=Forked,
        dry_answer=DryRun,
        statuses=(201,),
        errors=(NotFound, Refused, IdTaken, UsageError),
    ),
    ApiRoute(
        name="diffRuns",
        method="GET",
        path=f"{API}/runs/{{id}}/diff/{{other}}",
        summary="Compare two runs, place by place",
        endpoint=forks.diff,
        scope=AccessScope.READ,
        query=forks.DiffQuery,
        answer=forks.RunsDiff,
        errors=(NotFound, Refused),
    ),
    ApiRoute(
        name="getUnitedPicture",
        method="GET",
        path=f"{API}/runs/{{id}}/diff/{{other}}/picture",
        summary="One picture with the boxes and arrows of two runs",
        endpoint=forks.united_picture,
        scope=AccessScope.READ,
        query=forks.DiffQuery,
        answer=DrawnPicture,
        errors=(NotFound, Refused, RunUnreadable, LimitExceeded),
    ),
)
