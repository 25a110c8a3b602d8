"""Every operation of the document, asked for with whatever a generator can think of: no 5xx, no hang, nothing untrue.

``WEFT_FUZZ_EXAMPLES`` sets how many cases are drawn per operation, besides those that the document itself suggests.
They are more than 3,000 together; ``-s`` prints how many. The cases are made when tests are collected, so this file is
collected only in ``make proof``; ``make test`` has ``test_fuzz_sample.py``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.server.fuzz import attacked, routes, schema, send
from tests.server.kit import Server

EXAMPLES = int(os.environ.get("WEFT_FUZZ_EXAMPLES", "25"))
CASES_MIN = 3_000

seen: Counter[str] = Counter()
pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with attacked() as running:
        yield running
    print(f"{sum(seen.values())} cases over {len(seen)} operations")
    if len(seen) == len(routes):  # all of them ran in this very process
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
    send(case, server)
