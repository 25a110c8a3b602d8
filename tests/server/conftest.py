"""One server for the tests of a module, where nothing they do disturbs another."""

from collections.abc import Iterator

import pytest

from tests import scale
from tests.server.kit import Server, serving
from tests.server.shop import shop
from weft.server.limits import RequestLimits

# Making the cases of this file takes as long as sending them.
collect_ignore = scale.scaled(["test_fuzz.py"], [])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(shop(), limits=RequestLimits(wait_seconds=10)) as running:
        yield running
