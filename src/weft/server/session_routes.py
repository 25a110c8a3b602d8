"""The routes by which browsers sign in and out."""

from __future__ import annotations

from weft.errors import Refused
from weft.server import views
from weft.server.endpoints import session
from weft.server.router import API, ApiRoute

SESSIONS = (
    ApiRoute(
        name="openSession",
        method="POST",
        path=f"{API}/session",
        summary="Sign a browser in with a key; the session is in a cookie",
        endpoint=session.open_session,
        scope=None,
        body=session.NewSession,
        answer=session.OpenedSession,
        errors=(Refused,),
        refusals=(401, 403),
    ),
    ApiRoute(
        name="endSession",
        method="DELETE",
        path=f"{API}/session",
        summary="Sign a browser out",
        endpoint=session.end_session,
        scope=None,
        body=views.Nothing,
        answer=session.EndedSession,
        errors=(Refused,),
        refusals=(403,),
    ),
    ApiRoute(
        name="beginSignIn",
        method="GET",
        path=f"{API}/session/oidc",
        summary="Send a browser to the identity provider to sign in",
        endpoint=session.begin_sign_in,
        scope=None,
        query=session.SignInQuery,
        statuses=(302,),
        errors=(Refused,),
        refusals=(503,),
        kind="file",
    ),
    ApiRoute(
        name="finishSignIn",
        method="GET",
        path=session.CALLBACK,
        summary="Where the identity provider sends the browser back to",
        endpoint=session.finish_sign_in,
        scope=None,
        any_query=True,
        statuses=(302,),
        errors=(Refused,),
        kind="file",
    ),
)
