"""The pytest plugin: ``weft_app`` is your app, and ``weft_world`` a simulated world for it. Tests are synchronous.

Name the app in the ini file (``weft_app = "shop:app"``), or override the fixture. Weft is imported only when a test
uses a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weft.authoring.app import App
    from weft.testing.world import World


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that names the app."""
    parser.addini("weft_app", 'the app of weft_world: "module:name"', default="")


@pytest.fixture
def weft_app(request: pytest.FixtureRequest) -> App:
    """Return the app under test."""
    named = str(request.config.getini("weft_app"))
    module, colon, name = named.partition(":")
    if not colon:
        raise pytest.UsageError(
            'weft_world needs an app: set weft_app = "shop:app" in the ini file, or write a fixture weft_app.'
        )
    app: App = getattr(import_module(module), name)
    return app


@pytest.fixture
def weft_world(weft_app: App) -> Iterator[World]:
    """Return a simulated world for the app. The test fails if a planned crash did not happen."""
    from weft.testing.world import World  # noqa: PLC0415 - slow to import, and many tests do not use it

    world = World(weft_app)
    yield world
    missed = world.missed_crashes()
    world.close()
    if missed:
        pytest.fail(f"planned crashes that did not happen: {', '.join(missed)}")
