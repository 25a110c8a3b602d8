"""Each rule of patches, switched off, is noticed by a golden case or by a test of the rule."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.graph import test_patch_rules as rules
from tests.graph.test_patch_golden import CASES
from tests.graph.test_patch_golden import test_a_golden_patch as play_case
from tests.graph.test_patch_recall import (
    test_an_output_is_recalled_whatever_the_id_of_the_token_begins_with as recall_whatever_the_id,
)
from weft.core.graph.patch import joins, judge
from weft.core.graph.patch.apply import PatchGame
from weft.core.graph.patch.instructions import Instructions
from weft.core.graph.patch.joins import JoinRules
from weft.core.graph.patch.judge import GraphJudge
from weft.core.graph.patch.places import NewPlaces
from weft.core.graph.patch.reach import ScopeReach, begin_in

_slots = JoinRules.slots
_out, _walk = ScopeReach._out, ScopeReach.walk


def _without(field: str) -> Any:
    def slots(self: JoinRules, scope: Any) -> Any:
        return (msgspec.structs.replace(one, **{field: []}) for one in _slots(self, scope))

    return slots


RULES = [
    ("tokens need a place", NewPlaces, "_token", lambda *_: iter(()), "09-node_removed"),
    ("tokens keep their scope", NewPlaces, "_token", lambda *_: iter(()), "19-loop_around_token"),
    ("frames need a place", NewPlaces, "_frame", lambda *_: iter(()), "15-fan_in_removed"),
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


def _begin_without(field: str) -> Any:
    def begin(*given: Any) -> Any:
        return msgspec.structs.replace(begin_in(*given), **{field: []})

    return begin


def _out_of_plain_nodes(self: ScopeReach, name: str, own: str, *, at_work: bool) -> Any:
    return [] if self.graph.nodes[name].heads else _out(self, name, own, at_work=at_work)


OTHER_RULES = [
    (
        judge,
        "find_reroute",
        lambda *_: "",
        rules.test_a_token_that_waits_takes_the_place_of_the_edge_that_replaced_its_own,
    ),
    (JoinRules, "slots", _without("forget"), rules.test_skips_at_a_join_to_which_nothing_comes_are_forgotten),
    (JoinRules, "slots", _without("ran"), rules.test_a_node_that_has_run_is_not_skipped_afterwards),
    (NewPlaces, "_loop", lambda *_: iter(()), rules.test_a_loop_that_is_running_stays),
    (NewPlaces, "_waiting", lambda *_: iter(()), rules.test_a_join_where_a_token_waits_stays_one),
    (GraphJudge, "_check_end", lambda _: None, rules.test_the_last_token_is_not_dropped),
    (joins, "begin_in", _begin_without("reached"), rules.test_a_join_goes_on_waiting_for_branches_that_are_open),
    (joins, "begin_in", _begin_without("exits"), rules.test_a_join_goes_on_waiting_for_a_loop_that_is_running),
    (ScopeReach, "_out", _out_of_plain_nodes, rules.test_a_join_goes_on_waiting_for_a_loop_that_lies_ahead),
    (
        ScopeReach,
        "walk",
        lambda self, begin, own, _, **options: _walk(self, begin, own, (), **options),
        rules.test_nothing_is_expected_behind_a_node_that_has_run,
    ),
    (ScopeReach, "_is_shadowed", lambda *_: False, rules.test_an_edge_that_a_better_one_hid_counts_as_new),
    (Instructions, "_is_taken", lambda *_: False, rules.test_no_token_comes_over_an_edge_over_which_one_waits),
    (PatchGame, "_start_waiting", lambda *_: None, rules.test_queued_branches_begin_up_to_the_new_width),
    (
        PatchGame,
        "_keep_first",
        lambda *_: None,
        rules.test_of_more_branches_than_are_needed_now_the_first_that_arrived_count,
    ),
    (PatchGame, "_declare", lambda *_: None, rules.test_a_field_of_the_state_that_is_new_has_its_default),
    (GraphJudge, "_recalled", lambda _: {}, partial(recall_whatever_the_id, "0")),
]


@pytest.mark.parametrize("rule", OTHER_RULES, ids=lambda rule: rule[1])
def test_a_rule_without_a_golden_case_is_noticed_too(monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    owner, name, instead, test = rule
    test()
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
