"""Requests that a generator thinks of, from the document alone, and the server that they are sent to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
import schemathesis
from schemathesis.checks import CHECKS

from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.server.buffered_http import HEAD_BYTES_MAX
from weft.server.limits import RequestLimits
from weft.server.openapi import openapi_document
from weft.server.route_table import ROUTES

SECONDS_MAX = 60.0
# A live stream goes on until the client leaves, and this client waits for its end.
ENDLESS = {"followAll", "followLogs", "followRun", "followStream"}
# What fits the schema may still name a workflow, run or place that is not there, or a text that is no time or cursor.
LEFT_OUT = {"positive_data_acceptance", "ignored_auth", "use_after_free", "ensure_resource_availability"}
# Too large, too long, too many: refusals like any other.
REFUSED = ["400", "403", "404", "405", "409", "413", "415", "422", "429", "431"]


@schemathesis.serializer("application/zip")
def no_zip(_: object, value: object) -> bytes:
    """A body that is no bundle; tests/bundles has those that are nearly one."""
    return value if isinstance(value, bytes) else repr(value).encode()


config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
routes = [route for route in ROUTES if route.name not in ENDLESS]
schema = schemathesis.openapi.from_dict(openapi_document(routes), config=config)
OF_HTTP_ANSWERS = {"content_type_conformance", "response_schema_conformance", "status_code_conformance"}
checks = [CHECKS.get_one(name) for name in CHECKS.get_all_names() if name not in LEFT_OUT]
session = requests.Session()
session.trust_env = False  # or proxies are looked for in the environment before every request


@contextmanager
def attacked() -> Iterator[Server]:
    """A server that must work afterwards as it did before."""
    with serving(shop(), limits=RequestLimits(wait_seconds=0.05)) as running:
        for workflow, given in (("hello", {"name": "a"}), ("order", {"order_id": "o"}), ("ship", {"order_id": "o"})):
            running.start(workflow, "x" if workflow == "hello" else None, **given)
        running.result(running.start("unlucky", n=1))
        yield running
        session.close()
        assert running.get("/readyz").json["status"] == "ready"
        assert running.result(running.start("hello", name="after"))["output"] == "hello after!"
        assert running.get(f"{API}/runs/x").json["output"] == "hello a!"


def send(case: schemathesis.Case, server: Server) -> None:
    """Send a request, and hold the answer against the document."""
    try:
        response = case.call(base_url=server.url, session=session, timeout=SECONDS_MAX)
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
        # A head that is longer than any head is cut off while it is sent; whoever sends it may not hear why.
        sent = requests.Request(**case.as_transport_kwargs(base_url=server.url)).prepare()
        assert len(str(sent.url)) + len(str(sent.headers)) > HEAD_BYTES_MAX
        return
    # A path that is too long is refused before anybody asks which methods it has.
    left_out = {"unsupported_method"} if response.status_code == 413 else set()
    if case.operation.path == "/mcp":
        left_out |= OF_HTTP_ANSWERS  # answers and errors there are those of JSON-RPC
    case.validate_response(response, checks=[one for one in checks if one.__name__ not in left_out])
