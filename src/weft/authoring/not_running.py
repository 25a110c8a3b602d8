"""The error for an app that this process does not host."""

from __future__ import annotations

from typing import NoReturn

from weft.authoring.notebooks import in_notebook
from weft.errors import NotRunning

HINT = (
    "Host it: `async with app: ...`, FastAPI(lifespan=app.lifespan) or app.run(...). "
    "To talk to an engine elsewhere: weft.Client(url)."
)
NOTEBOOK_HINT = "In a notebook, the first `await app.start(...)` hosts the app. With a run's id, it finds that run."


def not_running() -> NoReturn:
    """Raise NotRunning, because this process does not host the engine."""
    hint = NOTEBOOK_HINT if in_notebook() else HINT
    raise NotRunning("The engine is not running here, so this run would never move.", hint=hint)
