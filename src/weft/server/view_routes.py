"""The routes that only screens need: views of one run, who is asking, and what listed runs wait for."""

from __future__ import annotations

from weft.errors import LimitExceeded, NotFound, RunUnreadable
from weft.observe.pictures.drawn import DrawnPicture
from weft.server.endpoints import frame, run_views
from weft.server.identity import AccessScope
from weft.server.router import API, ApiRoute

_RUN = f"{API}/runs/{{id}}"

VIEWS = (
    ApiRoute(
        name="getMe",
        method="GET",
        path=f"{API}/me",
        summary="Who is asking, and which server answers",
        endpoint=frame.me,
        scope=AccessScope.READ,
        answer=frame.Me,
    ),
    ApiRoute(
        name="getWaits",
        method="GET",
        path=f"{API}/waits",
        summary="What the runs of a list wait for",
        endpoint=frame.waits,
        scope=AccessScope.READ,
        query=frame.WaitsQuery,
        answer=frame.Waits,
    ),
    ApiRoute(
        name="getPicture",
        method="GET",
        path=f"{_RUN}/picture",
        summary="The picture of a run: boxes and arrows with their layout",
        endpoint=run_views.picture,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=DrawnPicture,
        errors=(NotFound, RunUnreadable, LimitExceeded),
    ),
    ApiRoute(
        name="getStanding",
        method="GET",
        path=f"{_RUN}/standing",
        summary="How a run stood after an event: the marks of its boxes, and how often its arrows were taken",
        endpoint=run_views.standing,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=run_views.StandingView,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="listPlaces",
        method="GET",
        path=f"{_RUN}/places",
        summary="What a run did, place by place, without values",
        endpoint=run_views.places,
        scope=AccessScope.READ,
        query=run_views.PlacesQuery,
        answer=run_views.PlacesView,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="getPlace",
        method="GET",
        path=f"{_RUN}/places/{{number}}",
        summary="One place of a run: its input, output and attempts",
        endpoint=run_views.place,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=run_views.PlaceDetail,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="getTimeline",
        method="GET",
        path=f"{_RUN}/timeline",
        summary="When the boxes of a run worked and waited",
        endpoint=run_views.timeline,
        scope=AccessScope.READ,
        query=run_views.TimelineQuery,
        answer=run_views.TimelineView,
        errors=(NotFound, RunUnreadable),
    ),
)
