"""The addresses of the web UI. They are not part of the API and not in its document."""

from __future__ import annotations

from weft.server.endpoints import screens
from weft.server.router import ApiRoute
from weft.server.web.files import WebFiles

SCREENS = (
    "/runs",
    "/runs/{id}",
    "/runs/{id}/diff/{other}",
    "/runs/{id}/change",
    "/inbox",
    "/inbox/{approval}",
    "/workflows",
    "/workflows/{name}",
    "/workflows/{name}/diff/{a}/{b}",
    "/workflows/{name}/edit",
    "/goals",
    "/operations",
    "/login",
)


def screen_routes(files: WebFiles) -> tuple[ApiRoute, ...]:
    """Return a route for every screen and every file."""
    pages = (
        ApiRoute(
            name="screen",
            method="GET",
            path=path,
            summary="A screen of the web UI",
            endpoint=screens.screen,
            scope=None,
            any_query=True,
            kind="file",
            media=screens.HTML,
        )
        for path in SCREENS
    )
    sent = (
        ApiRoute(
            name="webFile",
            method="GET",
            path=f"/{file.path}",
            summary="A file of the web UI",
            endpoint=screens.file_endpoint(file),
            scope=None,
            any_query=True,
            kind="file",
            media=file.media,
        )
        for file in files.files.values()
    )
    return (*pages, *sent)
