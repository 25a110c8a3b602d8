"""Each rule of patches, switched off, is noticed by a golden case or by a test of the rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.graph import test_patch_rules as rules
from tests.graph.test_patch_golden import CASES
from tests.graph.test_patch_golden import test_a_golden_patch as play_case
from weft.core.graph.patch import judge
from weft.core.graph.patch.apply import PatchGame
from weft.core.graph.patch.instructions import Instructions
from weft.core.graph.patch.joins import JoinRules
from weft.core.graph.patch.judge import GraphJudge
from weft.core.graph.patch.places import Places

_slots = JoinRules.slots


def _without(field: str) -> Any:
    def slots(self: JoinRules, scope: Any) -> Any:
        return (msgspec.structs.replace(one, **{field: []}) for one in _slots(self, scope))

    return slots


RULES = [
    ("tokens need a place", Places, "_token", lambda *_: iter(()), "09-node_removed"),
    ("tokens keep their scope", Places, "_token", lambda *_: iter(()), "19-loop_around_token"),
    ("frames need a place", Places, "_frame", lambda *_: iter(()), "15-fan_in_removed"),
    ("what cannot come counts as not taken", JoinRules, "slots", _without("skip"), "05-arm_too_late"),
    ("the same behind a moved token", JoinRules, "slots", _without("skip"), "11-go_back"),
    ("a skip is taken back", JoinRules, "slots", _without("unskip"), "23-untaken_arm"),
    ("nothing is revived", GraphJudge, "_check_revived", lambda *_: None, "21-revives"),
    ("tokens are moved", Instructions, "resolve", lambda _: None, "11-go_back"),
    ("tokens are dropped", Instructions, "resolve", lambda _: None, "27-drop_branch"),
    ("tokens are started", Instructions, "resolve", lambda _: None, "29-started_by_hand"),
    ("complete joins fire", PatchGame, "_look_at_slot", lambda *_: None, "07-cut_completes_join"),
    ("frames are judged", PatchGame, "_look_at_frame", lambda *_: None, "13-need_lowered"),
    ("the position is checked", judge, "check_here", lambda *_, **__: ("sound", []), "25-unsound_from_here"),
]


OTHER_RULES = [
    (
        judge,
        "find_reroute",
        lambda *_: "",
        rules.test_a_token_that_waits_takes_the_place_of_the_edge_that_replaced_its_own,
    ),
    (JoinRules, "slots", _without("forget"), rules.test_skips_at_a_join_to_which_nothing_comes_are_forgotten),
    (JoinRules, "slots", _without("ran"), rules.test_a_node_that_has_run_is_not_skipped_afterwards),
    (Places, "_loop", lambda *_: iter(()), rules.test_a_loop_that_is_running_stays),
    (Places, "_waiting", lambda *_: iter(()), rules.test_a_join_where_a_token_waits_stays_one),
    (GraphJudge, "_check_end", lambda _: None, rules.test_the_last_token_is_not_dropped),
]


@pytest.mark.parametrize("rule", OTHER_RULES, ids=lambda rule: rule[-1].__name__.removeprefix("test_"))
def test_a_rule_without_a_golden_case_is_noticed_too(monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    owner, name, instead, test = rule
    monkeypatch.setattr(owner, name, instead)
    with pytest.raises((Exception, pytest.fail.Exception)):
        test()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[0])
def test_a_rule_that_is_switched_off_is_noticed(monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    _, owner, name, instead, case = rule
    path: Path = next(path for path in CASES if path.stem == case)
    play_case(path)
    monkeypatch.setattr(owner, name, instead)
    with pytest.raises((Exception, pytest.fail.Exception)):
        play_case(path)
