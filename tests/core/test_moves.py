"""A run that was moved has nothing to do, and one that was adopted goes on exactly as it was."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tests.core.histories import History, Tape, play
from weft.core import commands as c
from weft.core.code.machine import CodeMachine
from weft.core.run.env import Env
from weft.core.run.moves import work_in_flight
from weft.errors import Refused, RunFinished

ENV = Env(now=10**15, check=lambda *_: None)


def without_numbers(machine: CodeMachine) -> dict[str, Any]:
    state = msgspec.json.decode(machine.snapshot())
    return {name: part for name, part in state.items() if name not in ("seq", "at")}


def give(machine: CodeMachine, command: c.AnyCommand) -> None:
    for event in machine.decide(command, ENV):
        machine.evolve(event, at=machine.state.at)


def test_every_moment_without_work_in_flight_can_be_moved_and_nothing_changes_by_it() -> None:
    moved = refused = 0
    for seed in range(60):
        chance = random.Random(f"moves {seed}")
        history = play(History(), Tape([chance.randrange(2**16) for _ in range(chance.randrange(20, 120))]))
        machine = CodeMachine.fresh(history.state.uid)
        for event, at in history.log:
            machine.evolve(event, at=at)
            copy = CodeMachine.restore(machine.snapshot())
            before, effects = without_numbers(copy), [*copy.outstanding()]
            if copy.state.over:
                with pytest.raises(RunFinished):
                    give(copy, c.MoveRun(digest="d"))
                continue
            if work_in_flight(copy):
                refused += 1
                with pytest.raises(Refused, match="work in flight"):
                    give(copy, c.MoveRun(digest="d"))
                continue
            moved += 1
            give(copy, c.MoveRun(digest="d", to="there"))
            assert (copy.state.status, copy.outstanding(), copy.rests()) == ("moved", (), True)
            with pytest.raises(Refused, match="another bundle"):
                give(copy, c.AdoptRun(digest="other"))
            give(copy, c.AdoptRun(digest="d"))
            assert (without_numbers(copy), [*copy.outstanding()]) == (before, effects)
    assert min(moved, refused) > 200
