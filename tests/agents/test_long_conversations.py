"""A conversation of many turns: what a turn writes and what waking costs does not grow with it."""

from __future__ import annotations

import itertools

import pytest

import weft
from weft.runtime.programs import code_machine
from weft.testing import World, calls

TURN_BYTES_MAX = 20_000


def talk(world: World, agent: weft.Agent[str], turns: int) -> tuple[list[int], list[int]]:
    """Run an agent for so many turns. Returns the bytes that each turn wrote, and the entries of its state then."""
    content = world._store.content
    written, entries = [], []

    def size() -> int:
        logs = sum(len(event.body) for run in content.runs.values() for event in run.events)
        return logs + sum(len(blob.data) for blob in content.blobs.values())

    def reply(_: object) -> object:
        written.append(size())
        local = world._service.local
        assert local is not None
        entries.extend(len(code_machine(actor.machine).state.entries) for actor in local.all())
        number = len(written)
        return calls(read={"page": number}, says=f"I read page {number}.") if number <= turns else "Done."

    world.fake_model("fast", *[reply] * (turns + 1))
    assert world.run(agent("Read.")).turns == turns + 1
    return [after - before for before, after in itertools.pairwise(written)], entries


def reader() -> tuple[weft.App, weft.Agent[str]]:
    app = weft.App()
    app.model("fast", url="http://127.0.0.1:9/v1")

    @app.step(effect="pure")
    async def read(page: int) -> str:
        return f"page {page}: " + "words " * 300

    return app, app.agent("reader", model="fast", system="You read.", tools=[read], turns=1_000)


@pytest.mark.parametrize("turns", [120, pytest.param(800, marks=pytest.mark.proof)])
def test_a_turn_writes_the_same_at_the_beginning_and_at_the_end(turns: int) -> None:
    app, agent = reader()
    world = World(app)
    written, entries = talk(world, agent, turns)

    assert max(written) < TURN_BYTES_MAX
    assert max(written[-20:]) < max(written[10:30]) * 1.1
    assert max(entries) < 30


def test_a_turn_is_two_commits() -> None:
    app, agent = reader()
    world = World(app)
    talk(world, agent, 20)

    assert world.writes.count("log.commit") <= 2 * 21 + 3
