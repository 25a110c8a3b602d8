"""The routes that only screens need: views of one run, who is asking, and what listed runs wait for."""

from __future__ import annotations

from weft.errors import LimitExceeded, NotFound, RunUnreadable
from weft.observe.conversation import ConversationView
from weft.observe.pictures.drawn import DrawnPicture
from weft.server.endpoints import conversation, frame, run_family, run_place, run_state, run_views
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
        anonymous=True,
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
        name="getConversation",
        method="GET",
        path=f"{_RUN}/conversation",
        summary="The conversation of an agent's run: turns, tool calls, results, and who approved what",
        endpoint=conversation.conversation,
        scope=AccessScope.READ,
        query=conversation.ConversationQuery,
        answer=ConversationView,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="getPicture",
        method="GET",
        path=f"{_RUN}/picture",
        summary="The picture of a run: boxes and arrows with their layout",
        endpoint=run_views.show_run_picture,
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
        endpoint=run_views.show_run_standing,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=run_views.StandingView,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="getState",
        method="GET",
        path=f"{_RUN}/state",
        summary="What a run holds after an event, and what the event changed",
        endpoint=run_state.state,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=run_state.StateView,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="getValue",
        method="GET",
        path=f"{_RUN}/values/{{ref}}",
        summary="One value of a run as JSON, also a range of its bytes",
        endpoint=run_state.value,
        scope=AccessScope.READ,
        statuses=(200, 206, 416),
        errors=(NotFound, RunUnreadable),
        kind="file",
    ),
    ApiRoute(
        name="listPlaces",
        method="GET",
        path=f"{_RUN}/places",
        summary="What a run did, place by place, without values",
        endpoint=run_views.list_run_places,
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
        endpoint=run_place.place,
        scope=AccessScope.READ,
        query=run_views.AtQuery,
        answer=run_place.PlaceDetail,
        errors=(NotFound, RunUnreadable),
    ),
    ApiRoute(
        name="getFamily",
        method="GET",
        path=f"{_RUN}/family",
        summary="The runs above a run, and those that it started, with counts",
        endpoint=run_family.family,
        scope=AccessScope.READ,
        query=run_family.FamilyQuery,
        answer=run_family.Family,
        errors=(NotFound,),
    ),
    ApiRoute(
        name="getTimeline",
        method="GET",
        path=f"{_RUN}/timeline",
        summary="When the boxes of a run worked and waited",
        endpoint=run_views.show_run_timeline,
        scope=AccessScope.READ,
        query=run_views.TimelineQuery,
        answer=run_views.TimelineView,
        errors=(NotFound, RunUnreadable),
    ),
)
