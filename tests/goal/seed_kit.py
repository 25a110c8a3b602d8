"""Steps as the seed of goals writes them, and runs told in its words."""

from collections.abc import Sequence
from typing import Any

import weft
from weft.core.goal.seed_names import seed_names
from weft.core.unfold import ViewEvent
from weft.observe.event_parts import Unfolding
from weft.testing import World
from weft.testing.world import SimRun

Attributes = dict[str, dict[str, Any]]


def step(id: str, attributes: Attributes, **more: Any) -> dict[str, Any]:
    """A step as the seed writes one; without a way it is a registered function of its name."""
    way = {} if {"http", "script", "flow"} & set(more) else {"step": id}
    return {"id": id, "attributes": attributes, **way, **more}


def needs(*names: str, **more: Any) -> Attributes:
    return {name: {"role": "required", "type": "string", **more} for name in names}


def gives(*names: str, type: str = "string") -> Attributes:
    return {name: {"role": "output", "type": type} for name in names}


def app_with(*steps: dict[str, Any]) -> weft.App:
    """An app with these steps; functions of it are answered by the world's fakes."""
    app = weft.App("memory://")
    for one in steps:
        if "step" in one:
            register(app, one)
    app.steps({"weft": "steps/1", "steps": list(steps)})
    return app


def register(app: weft.App, one: dict[str, Any]) -> None:
    names = [name for name, spec in one["attributes"].items() if spec["role"] != "output"]
    namespace: dict[str, Any] = {}
    exec(f"async def body({', '.join(f'{name}=None' for name in names)}): raise AssertionError", namespace)
    app.step(name=one["id"])(namespace["body"])


def log_of(run: SimRun[Any]) -> list[ViewEvent]:
    content = run.world._store.content
    unfolding = Unfolding()
    records = content.runs[content.ids[run.id]].events  # type: ignore[index]
    return [part.event for stored in records for part in unfolding.add(stored)]


def told(run: SimRun[Any]) -> list[str]:
    """The log in the seed's words."""
    return [name for event in log_of(run) for name in seed_names(event)]


def achieve(
    app: weft.App, goals: Sequence[str], given: dict[str, Any], world: World | None = None
) -> SimRun[weft.Facts]:
    name = f"{'-'.join(goals)}-{len(app.registered.goals())}"
    return (world or World(app)).start(app.goal(name, *goals), given)


FETCH = step("fetch-user", {**needs("user_id"), **gives("email", "name")})
MAIL = step("send-email", {**needs("email"), **gives("message_id")})
