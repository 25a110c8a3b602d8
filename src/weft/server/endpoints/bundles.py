"""Bundles: export a run as a file, and import such a file."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from weft.runtime.bundles.importer import Imported
from weft.runtime.bundles.service import BundleService
from weft.server import views
from weft.server.problems import RequestRefused
from weft.server.request import ApiCall, Reply

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


async def export(call: ApiCall) -> Reply:
    """Return a run as a bundle."""
    asked = call.query_as(BundleQuery)
    bundles = BundleService(call.service)
    return Reply(
        await bundles.export(call.parameters["id"], tree=asked.tree, streams=asked.streams, redact=asked.redact)
    )


async def import_(call: ApiCall) -> Imported:
    """Import the runs of a bundle."""
    assert isinstance(call.body, msgspec.Raw)
    # A page of another site can send a body of any type that a form has, but not this one.
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != ZIP:
        raise RequestRefused(415, "request.wrong_type", "The body must be a bundle.", hint=f"Content-Type: {ZIP}")
    return await BundleService(call.service).import_(bytes(call.body))
