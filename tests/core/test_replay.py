"""Frozen appliers: what a released event does to a state, it does for ever."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.freeze_events import FOLDER, HASHES, applied, hash_of, hashes, kinds


@pytest.mark.parametrize("kind", kinds())
def test_an_event_does_to_a_state_what_it_did_when_it_was_frozen(kind: str) -> None:
    frozen = msgspec.json.decode((FOLDER / f"{kind}.json").read_bytes())
    assert frozen["kind"] == kind
    assert frozen["cases"]
    for case in frozen["cases"]:
        assert case["event"]["kind"] == kind.rpartition(".")[2]
        assert applied(kind, case) == case["after"]


def test_no_frozen_file_was_changed_added_or_lost() -> None:
    known = hashes()
    assert {path.name: hash_of(path) for path in FOLDER.glob("*.json")} == known
    assert len(HASHES.read_text().splitlines()) == len(known)


def test_a_frozen_case_that_is_wrong_is_noticed() -> None:
    case = msgspec.json.decode((FOLDER / "timer_fired.json").read_bytes())["cases"][0]
    case["after"]["seq"] += 1
    assert applied("timer_fired", case) != case["after"]
