"""Each rule of patches, switched off, is noticed by a golden case or by a test of the rule."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.graph import test_patch_instructions as told
from tests.graph import test_patch_places as places_rules
from tests.graph import test_patch_rules as rules
from tests.graph.rule_texts import changed_source
from tests.graph.test_patch_golden import CASES
from tests.graph.test_patch_golden import test_a_golden_patch as play_case
from tests.graph.test_patch_recall import (
    test_an_output_is_recalled_whatever_the_id_of_the_token_begins_with as recall_whatever_the_id,
)
from weft.core.graph import kept_branches
from weft.core.graph.patch import apply, instructions, joins, judge, places, reach
from weft.core.graph.patch.apply import PatchGame
from weft.core.graph.patch.instructions import Instructions
from weft.core.graph.patch.joins import JoinRules
from weft.core.graph.patch.judge import GraphJudge
from weft.core.graph.patch.places import NewPlaces
from weft.core.graph.patch.reach import ScopeReach, begin_in

_slots = JoinRules.slots
_out, _walk = ScopeReach._edges_behind, ScopeReach.walk


def _without(field: str) -> Any:
    def slots(self: JoinRules, scope: Any) -> Any:
        return (msgspec.structs.replace(one, **{field: []}) for one in _slots(self, scope))

    return slots


RULES = [
    ("tokens need a place", NewPlaces, "_check_token", lambda *_: iter(()), "09-node_removed"),
    ("tokens keep their scope", NewPlaces, "_check_token", lambda *_: iter(()), "19-loop_around_token"),
    ("frames need a place", NewPlaces, "_check_frame", lambda *_: iter(()), "15-fan_in_removed"),
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
    (NewPlaces, "_check_loop", lambda *_: iter(()), rules.test_a_loop_that_is_running_stays),
    (NewPlaces, "_check_waiting_token", lambda *_: iter(()), rules.test_a_join_where_a_token_waits_stays_one),
    (GraphJudge, "_check_end", lambda _: None, rules.test_the_last_token_is_not_dropped),
    (joins, "begin_in", _begin_without("reached"), rules.test_a_join_goes_on_waiting_for_branches_that_are_open),
    (joins, "begin_in", _begin_without("exits"), rules.test_a_join_goes_on_waiting_for_a_loop_that_is_running),
    (ScopeReach, "_edges_behind", _out_of_plain_nodes, rules.test_a_join_goes_on_waiting_for_a_loop_that_lies_ahead),
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
    (
        PatchGame,
        "_write_fields_and_outputs",
        lambda *_: None,
        rules.test_a_field_of_the_state_that_is_new_has_its_default,
    ),
    (GraphJudge, "_recall_outputs", lambda _: {}, partial(recall_whatever_the_id, "0")),
]


ALL_OF_A_BRANCH = places_rules.test_an_unsettled_branch_needs_its_edge_and_a_settled_one_does_not
SUBSTITUTE = rules.test_a_token_that_waits_takes_only_a_new_edge_on_its_way_and_only_if_there_is_one
LEAVES_A_LOOP = told.test_a_moved_token_may_leave_a_loop_and_enters_one_at_its_header
ONE_EACH = told.test_an_instruction_names_one_token_and_one_instruction_each


def comes_to_a_moved_token() -> None:
    told.test_what_comes_to_a_moved_token({"to": "b"}, "from a")
    told.test_what_comes_to_a_moved_token({"to": "b", "input": "given"}, "given")


def needs_leave() -> None:
    with pytest.MonkeyPatch.context() as patching:
        places_rules.test_more_positions_than_can_be_looked_at_need_leave_and_that_is_recorded(patching)


def undo_without_leave() -> None:
    with pytest.MonkeyPatch.context() as patching:
        places_rules.test_an_undo_that_follows_at_once_needs_no_leave(patching)


PARTS_OF_RULES = [
    ("frames keep their scope", places, "if not frame.fired and not any(", "if False and not any(",
     places_rules.test_a_fan_out_that_is_open_needs_its_opener_and_its_scope),
    ("open fan-outs need their fan-in", places, "if frame.fan_in and not self._same", "if False and not self._same",
     partial(places_rules.test_a_fan_out_that_is_open_needs_its_fan_in, 0)),
    ("a restart leaves a loop that is gone", instructions, "self._scope_at_node(move.to, token.path, works_on=works_on)",
     "list(token.path)", told.test_a_restarted_token_leaves_a_loop_that_is_gone),
    ("a restart at a join comes over no edge", instructions, 'edge = "" if works_on else', "edge =",
     partial(told.test_the_work_of_a_join_is_begun_again, rules.many, "bbb")),
    ("an undo at once needs no leave", judge, "unchecked=straight and not moved", "unchecked=False", undo_without_leave),
    ("but after a move it does", judge, "unchecked=straight and not moved", "unchecked=straight", undo_without_leave),
    ("unsettled branches need their edge", places, "if edge is None or not edge.opens:", "if edge and not edge.opens:",
     ALL_OF_A_BRANCH),
    ("settled branches do not", places, 'if branch.status != "open":', "if False:", ALL_OF_A_BRANCH),
    ("a fan-in that has fired keeps its rule", apply, "frame.rule = was if now is not None and was != now.fan_in else",
     "frame.rule = None and", places_rules.test_a_fan_in_that_has_fired_keeps_what_it_fired_under),
    ("loops without tokens have no exits", reach, "run.path == path and run.live and", "run.path == path and",
     LEAVES_A_LOOP),
    ("two substitutes are none", joins, 'found[0] if len(found) == 1 else ""', 'found[0] if found else ""', SUBSTITUTE),
    ("a substitute cannot deliver", joins, "name not in new_edges or name in reached.edges", "name not in new_edges",
     SUBSTITUTE),
    ("a substitute lies on the way", joins, "if sender == source or", "if True or", SUBSTITUTE),
    ("an undo finds the edge of its sender", joins, "if sender == source or", "if",
     rules.test_a_token_that_waits_takes_the_place_of_the_edge_that_replaced_its_own),
    ("an undo renames back", judge, "new: old for old, new in undone.nodes.items()", "old: old for old in ()",
     rules.test_an_undo_gives_renamed_nodes_their_names_back),
    ("an undo at once is not asked", judge, "            if not self._undoing:\n", "            if True:\n",
     told.test_an_undo_that_follows_at_once_is_not_asked_about_what_has_run),
    ("a later undo is asked", judge, "last is not None and last.seq == state.seq and", "last is not None and",
     told.test_an_undo_that_follows_at_once_is_not_asked_about_what_has_run),
    ("a move leaves loops", instructions, 'if not inside or inside[-1].kind == "f":', "if True:", LEAVES_A_LOOP),
    ("a move leaves no branch", instructions, 'if not inside or inside[-1].kind == "f":', "if not inside:",
     told.test_a_token_never_leaves_its_branch),
    ("a move has its input", instructions, "value = move.input or", "value =", comes_to_a_moved_token),
    ("or what came last", instructions, "visit.value if visit is not None else token.value)", "token.value)",
     comes_to_a_moved_token),
    ("a restart keeps its input", instructions, "(token.value if restart else visit.value", "(visit.value",
     told.test_a_restarted_token_keeps_what_came_to_it),
    ("who has arrived stays", instructions, 'elif token.mode == "parked":', "elif False:",
     told.test_a_token_that_has_arrived_stays),
    ("one instruction for a token", instructions, "if token.id in self._taken:", "if False:", ONE_EACH),
    ("one token for an instruction", instructions, "elif len(found) > 1 and not several:", "elif False:", ONE_EACH),
    ("an edge is taken by the same patch", instructions, "if any(one.edge == edge and one.path ==",
     "if any(False and one.path ==", told.test_two_tokens_do_not_come_over_one_edge),
    ("a token is started beside another", instructions, "beside.path if beside is not None else []", "[]",
     told.test_a_token_is_started_in_the_scope_of_another_with_an_input),
    ("a started token has its input", apply, "seen={}, value=one.value or e.NULL", "seen={}, value=e.NULL",
     told.test_a_token_is_started_in_the_scope_of_another_with_an_input),
    ("a dropped token leaves its queue", apply, 'if token.mode == "queued":\n            self._leave', "if False:\n            self._leave",
     told.test_a_branch_that_waits_for_room_is_told_too),
    ("without a width all begin", apply, "room = open_ if not edge.width else", "room = 0 if not edge.width else",
     places_rules.test_all_branches_begin_when_the_width_is_taken_away),
    ("a loop that is left is over", apply, "            self._end_emptied(run)\n", "            pass\n", LEAVES_A_LOOP),
    ("a need that cannot be met is refused", judge, "if name in self._state.tokens and name not in", "if False and name not in",
     places_rules.test_a_need_that_can_no_longer_be_met_would_end_the_run),
    ("what is unknown needs leave", judge, 'elif verdict == "unknown" and not', "elif False and not", needs_leave),
    ("and that is recorded", judge, 'unchecked=verdict == "unknown")', "unchecked=False)", needs_leave),
    ("an edge to a fan-in is taken", instructions, 'return any(t.mode == "parked" and t.node == node',
     "return any(False and t.node == node", told.test_a_branch_arrives_once_over_an_edge),
    ("a failed run waits for its retry", apply, "        if self.state.over:\n            return\n        self._concl",
     "        self._concl", told.test_a_failed_run_is_only_mended_and_goes_on_when_it_is_retried),
    ("dead letters are renamed", apply, "token: msgspec.structs.replace(letter, node=names.node(letter.node))",
     "token: letter", places_rules.test_a_branch_that_failed_is_repeated_under_the_new_name_of_its_node),
    ("a branch without a place is not repeated", kept_branches, "if not places.has(frame.branches[index], kept):",
     "if False:", places_rules.test_a_branch_that_failed_at_a_node_that_is_gone_is_not_repeated),
    ("the state is written", apply, "            self.write_here([], path.split", "            (lambda *_, **__: 0)([], path.split",
     places_rules.test_a_patch_writes_into_the_state),
]  # fmt: skip
"""A name, the module with the rule, the words that are changed, and the test that must notice it."""


@pytest.mark.parametrize("part", PARTS_OF_RULES, ids=lambda part: part[0])
def test_a_part_of_a_rule_is_noticed_too(part: Any) -> None:
    _, module, old, new, test = part
    test()
    with changed_source(module, old, new), pytest.raises((Exception, pytest.fail.Exception)):
        test()


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
