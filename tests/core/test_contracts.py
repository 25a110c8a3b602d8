"""Every cell of the table of effect contracts."""

from __future__ import annotations

from typing import get_args

import pytest

from weft.core.event_parts import Effect
from weft.core.run.contracts import CONTRACTS, Act, Situation, Undoing, judge_effect

EFFECTS: tuple[Effect, ...] = get_args(Effect)

# situation, equal, recorded: what happens to pure, idempotent and irreversible work
ROWS: list[tuple[Situation, bool, bool, tuple[Act, Act, Act]]] = [
    ("failed", True, True, ("perform", "perform", "fail")),
    ("lost", True, False, ("perform", "perform", "unknown")),
    ("recalled", True, True, ("keep", "keep", "refuse")),
    ("recalled", False, True, ("refuse", "refuse", "refuse")),
    ("repeated", True, True, ("perform", "perform", "keep")),
    ("repeated", True, False, ("perform", "perform", "ask")),
    ("repeated", False, True, ("perform", "perform_new", "ask")),
    ("repeated", False, False, ("perform", "perform_new", "ask")),
    ("copied", True, True, ("keep", "keep", "keep")),
    ("forked", True, True, ("keep", "perform", "keep")),
    ("forked", True, False, ("perform", "perform", "ask")),
    ("forked", False, True, ("perform", "perform", "ask")),
    ("reused", True, True, ("keep", "keep", "keep")),
    ("reused", True, False, ("perform", "perform", "ask")),
    ("reused", False, True, ("perform", "perform", "ask")),
    ("shadowed", True, True, ("perform", "keep", "keep")),
    ("shadowed", True, False, ("perform", "hold", "hold")),
    ("shadowed", False, True, ("perform", "hold", "hold")),
    ("dropped", True, False, ("stop", "stop", "drain")),
]


@pytest.mark.parametrize(("situation", "equal", "recorded", "acts"), ROWS)
def test_work_without_an_undo_goes_by_its_effect(
    situation: Situation, equal: bool, recorded: bool, acts: tuple[Act, Act, Act]
) -> None:
    assert tuple(judge_effect(situation, effect, equal=equal, recorded=recorded) for effect in EFFECTS) == acts


@pytest.mark.parametrize(("situation", "equal", "recorded", "acts"), ROWS)
def test_work_with_an_undo_is_never_recalled_and_always_drains(
    situation: Situation, equal: bool, recorded: bool, acts: tuple[Act, Act, Act]
) -> None:
    special: dict[Situation, Act] = {"recalled": "refuse", "dropped": "drain"}
    expected = (special[situation],) * 3 if situation in special else acts
    judged = tuple(judge_effect(situation, effect, equal=equal, recorded=recorded, has_undo=True) for effect in EFFECTS)
    assert judged == expected


def test_idempotent_work_is_recalled_only_if_its_step_caches() -> None:
    assert [judge_effect("recalled", effect, recorded=False) for effect in EFFECTS] == ["keep", "refuse", "refuse"]


def test_every_situation_says_what_happens_to_an_undo() -> None:
    expected: dict[Situation, Undoing] = {
        "failed": "as_effect",
        "lost": "if_unknown",
        "recalled": "never",
        "repeated": "earlier_too",
        "copied": "original",
        "forked": "own",
        "reused": "own",
        "shadowed": "never",
        "dropped": "after",
    }
    assert {situation: row.undoing for situation, row in CONTRACTS.items()} == expected


def test_the_table_has_a_row_for_every_situation() -> None:
    assert set(CONTRACTS) == set(get_args(Situation)) == {row[0] for row in ROWS}


@pytest.mark.parametrize("situation", get_args(Situation))
def test_irreversible_work_is_never_performed_without_asking(situation: Situation) -> None:
    for equal in (True, False):
        for recorded in (True, False):
            act = judge_effect(situation, "irreversible", equal=equal, recorded=recorded)
            assert act not in ("perform", "perform_new")
