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

# What is imported and collected stays: to look through all of it for garbage, over and over, costs seconds.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """From here on there is garbage, but none of it among the thousands of collected tests."""
    gc.collect()
    gc.freeze()
    gc.enable()
