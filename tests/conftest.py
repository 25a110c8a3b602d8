"""What every test may rely on: no store of the developer's machine, and the same examples on every machine."""

import gc
import os

import pytest
from hypothesis import settings

# A developer's own WEFT_URL would send the tests' runs to a real database.
os.environ.pop("WEFT_URL", None)

# Examples derive from the test, not from a clock or a local database, so a failure here is a failure everywhere.
settings.register_profile("weft", derandomize=True, database=None, deadline=None)
settings.load_profile("weft")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thousands of collected tests are no garbage: do not look through them over and over."""
    gc.collect()
    gc.freeze()
