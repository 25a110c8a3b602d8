"""Bundles: export a run as a file, and import such a file."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.runtime.bundles.importer import Imported
from weft.runtime.bundles.service import BundleService
from weft.server import views
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall, ApiReply

ZIP = "application/zip"


class BundleQuery(views.Form, frozen=True, kw_only=True):
    tree: bool = False
    """Also all runs below it."""
    streams: bool = False
    """Also the output of steps."""
    redact: Annotated[list[Annotated[str, Meta(max_length=1_000)]], Meta(max_length=100)] = msgspec.field(
        default_factory=list
    )
    """JSON pointers into events, such as ``/input/card``, whose values are left out."""


class AdoptQuery(views.Form, frozen=True, kw_only=True):
    adopt: bool = False
    """Go on with runs that were moved with this bundle."""


class RunMove(views.Form, frozen=True, kw_only=True):
    """Where a run is moved, why, and who says so; for people. With an API key, the key says who."""

    to: Annotated[str, Meta(max_length=500)] = ""
    reason: views.Text = ""
    by: views.Text = ""


async def export(call: ApiCall) -> ApiReply:
    """Return a run as a bundle."""
    asked = call.query_as(BundleQuery)
    bundles = BundleService(call.service)
    return ApiReply(
        await bundles.export(call.parameters["id"], tree=asked.tree, streams=asked.streams, redact=asked.redact)
    )


async def move(call: ApiCall) -> ApiReply:
    """End a run and all runs below it here, and return the bundle with which another store goes on."""
    given = call.body_as(RunMove)
    bundles = BundleService(call.service)
    return ApiReply(await bundles.move(call.parameters["id"], to=given.to, reason=given.reason, by=call.by(given.by)))


async def import_(call: ApiCall) -> Imported:
    """Import the runs of a bundle."""
    assert isinstance(call.body, msgspec.Raw)
    # A page of another site can send a body of any type that a form has, but not this one.
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != ZIP:
        raise RequestRefused(415, "request.wrong_type", "The body must be a bundle.", hint=f"Content-Type: {ZIP}")
    bundles = BundleService(call.service)
    return await bundles.import_(bytes(call.body), adopt=call.query_as(AdoptQuery).adopt, by=call.by())
