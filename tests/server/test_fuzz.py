"""Every operation of the document, asked for with whatever a generator can think of: no 5xx, no hang, nothing untrue.

``WEFT_FUZZ_EXAMPLES`` sets how many cases are drawn per operation, besides those that the document itself suggests. In
``make proof`` they are more than 3,000 together; ``-s`` prints how many. The server must work as before afterwards.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

from tests import scale
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from weft.server.buffered_http import HEAD_BYTES_MAX
from weft.server.limits import RequestLimits
from weft.server.openapi import document
from weft.server.table import ROUTES

EXAMPLES = int(os.environ.get("WEFT_FUZZ_EXAMPLES", str(scale.scaled(4, 40))))
CASES_MIN = 3_000
SECONDS_MAX = 60.0
# A live stream goes on until the client leaves, and this client waits for its end.
ENDLESS = {"followAll", "followRun", "followStream"}
# What fits the schema may still name a workflow, run or place that is not there, or a text that is no time or cursor.
LEFT_OUT = {"positive_data_acceptance", "ignored_auth", "use_after_free", "ensure_resource_availability"}

# Too large, too long, too many: refusals like any other.
REFUSED = ["400", "403", "404", "405", "409", "413", "415", "422", "429", "431"]

config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
# Its cases are made when tests are collected, which takes as long as sending them.
FEW = ["startRun", "listRuns", "getRun", "sendMessage", "decide", "claimTasks", "registerSteps", "plan"]
routes = [route for route in ROUTES if route.name not in ENDLESS]
schema = schemathesis.openapi.from_dict(document(routes), config=config)
if not scale.IS_PROOF:
    schema = schema.include(operation_id=FEW)
checks = [CHECKS.get_one(name) for name in CHECKS.get_all_names() if name not in LEFT_OUT]
session = requests.Session()
session.trust_env = False  # or proxies are looked for in the environment before every request
seen: Counter[str] = Counter()
pytestmark = scale.MARKS


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(shop(), limits=RequestLimits(wait_seconds=0.05)) as running:
        for workflow, given in (("hello", {"name": "a"}), ("order", {"order_id": "o"}), ("ship", {"order_id": "o"})):
            running.start(workflow, "x" if workflow == "hello" else None, **given)
        running.result(running.start("unlucky", n=1))
        yield running
        session.close()
        assert running.get("/readyz").json["status"] == "ready"
        assert running.result(running.start("hello", name="after"))["output"] == "hello after!"
        assert running.get(f"{API}/runs/x").json["output"] == "hello a!"
        print(f"{sum(seen.values())} cases over {len(seen)} operations")
        if scale.IS_PROOF and len(seen) == len(routes):  # all of them ran in this very process
            assert sum(seen.values()) >= CASES_MIN


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_breaks_the_server(case: schemathesis.Case, server: Server) -> None:
    seen[case.operation.label] += 1
    try:
        response = case.call(base_url=server.url, session=session, timeout=SECONDS_MAX)
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
        # A head that is longer than any head is cut off while it is sent; whoever sends it may not hear why.
        sent = requests.Request(**case.as_transport_kwargs(base_url=server.url)).prepare()
        assert len(str(sent.url)) + len(str(sent.headers)) > HEAD_BYTES_MAX
        return
    case.validate_response(response, checks=checks)
