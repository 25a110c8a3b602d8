"""The route that sets results by hand."""

from __future__ import annotations

from weft.errors import BadValue, NotFound, Refused, RunFinished, UsageError
from weft.observe.dry_runs import DryRun
from weft.server import views
from weft.server.endpoints import by_hand
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

BY_HAND = (
    ApiRoute(
        name="setResult",
        method="POST",
        path=f"{API}/runs/{{id}}/set",
        summary="End the work at a place by hand, or replace a recorded result of a code run",
        endpoint=by_hand.set_by_hand,
        scope=AccessScope.OPERATE,
        body=by_hand.SetByHand,
        answer=views.Accepted,
        dry_answer=DryRun,
        errors=(NotFound, Refused, RunFinished, BadValue, UsageError),
    ),
)
