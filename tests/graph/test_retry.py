"""A failed graph run that is tried again ends with the data of a run that never failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from tests import scale
from tests.graph.random_graphs import well_nested
from tests.graph.random_plays import Answer, Play, drawn_answers
from weft.core import commands as c
from weft.core import events as e
from weft.core.graph.model import GraphModel
from weft.errors import Refused
from weft.graphs.load import load_graph

RETRIES_MAX = 200
FATAL = {"not_enough", "loop_limit"}
"""Failures that follow from what was answered: trying again changes nothing."""


# --- every structure, by hand ------------------------------------------------------------------------------------

WORK = {"step": "s"}
INSIDE_ALL = {
    "a": {**WORK, "next": [{"to": ["b", "c"]}]},
    "b": {**WORK, "next": "j"},
    "c": {**WORK, "next": "j"},
    "j": {**WORK, "join": "all", "next": "end"},
    "end": WORK,
}
NESTED = {
    "a": {**WORK, "next": [{"to": ["b", "c"]}]},
    "b": {**WORK, "next": [{"to": ["d", "f"]}]},
    "d": {**WORK, "next": "i"},
    "f": {**WORK, "next": "i"},
    "i": {**WORK, "join": "all", "next": "j"},
    "c": {**WORK, "next": "j"},
    "j": {**WORK, "join": "all"},
}
SOME = {
    "a": {**WORK, "next": [{"to": ["b", "c", "d"]}]},
    "b": {**WORK, "next": "j"},
    "c": {**WORK, "next": "j"},
    "d": {**WORK, "next": "j"},
    "j": {**WORK, "join": {"at_least": 3}},
}
IN_A_LOOP = {
    "a": {**WORK, "next": [{"to": ["b", "c"]}]},
    "b": {**WORK, "next": "j"},
    "c": {**WORK, "next": "j"},
    "j": {**WORK, "join": "all", "repeat": {"while": "output.again", "at_most": 3, "back_to": "a"}, "next": "end"},
    "end": WORK,
}
LOOP_INSIDE = {
    "a": {**WORK, "next": [{"to": ["b", "c"]}]},
    "b": {**WORK, "repeat": {"while": "output.again", "at_most": 30}, "next": "j"},
    "c": {**WORK, "next": "j"},
    "j": {**WORK, "join": "all"},
}
EDGES = {
    "a": {**WORK, "next": [{"to": ["b", "c"]}]},
    "b": {**WORK, "next": "j"},
    "c": {**WORK, "next": "j"},
    "j": {**WORK, "join": "edges"},
}
WIDE = {
    "a": {**WORK, "next": [{"to": "b", "for_each": "${output.items}", "width": 2}]},
    "b": {**WORK, "next": "j"},
    "j": {**WORK, "join": "all"},
}
STRUCTURES = {
    "all": INSIDE_ALL,
    "nested": NESTED,
    "some": SOME,
    "in_a_loop": IN_A_LOOP,
    "loop_inside": LOOP_INSIDE,
    "edges": EDGES,
    "wide": WIDE,
}


def graph_of(nodes: Mapping[str, Any]) -> GraphModel:
    return load_graph({"nodes": dict(nodes)}).graph


def steady(node: str, token: str) -> dict[str, Any]:
    return {"from": node, "again": int(token[:1], 16) % 2 == 0, "items": [1, 2, 3, 4, 5]}


class Faulty:
    """Answers like another, but the calls of some tokens fail the first time."""

    def __init__(self, answer: Answer, fails: Callable[[str, str], bool]) -> None:
        self.answer = answer
        self.fails = fails
        self.done: set[str] = set()
        self.failed: set[str] = set()

    def __call__(self, node: str, token: str) -> dict[str, Any] | str:
        assert token not in self.done, f"{node} was performed again though it had succeeded"
        if self.fails(node, token) and token not in self.failed:
            self.failed.add(token)
            return "boom"
        self.done.add(token)
        return self.answer(node, token)


def retried(graph: GraphModel, answer: Faulty, order: int) -> Play:
    """Play to the end, trying again as often as it fails."""
    play = Play(graph, answer).to_the_end(order)
    for attempt in range(RETRIES_MAX):
        if play.state.status != "failed" or (play.code in FATAL and not raised_by_failure(play)):
            return play
        # A node that succeeded and then had no way to go on has failed all the same.
        answer.done -= {event.token for event in play.log if isinstance(event, e.NodeFailed)}
        play.tell(c.RetryRun())
        play.to_the_end(order + attempt)
    raise AssertionError("it fails for ever")


def raised_by_failure(play: Play) -> bool:
    """Whether a branch has failed that can still be tried again."""
    last = next(event for event in reversed(play.log) if isinstance(event, e.FailureRaised))
    return last.failure.type == "boom"


def given(play: Play) -> dict[str, Any]:
    """What every task of a run was given, by its place; places follow from causes."""
    found: dict[str, Any] = {}
    for effect in play.handed_out:
        known = found.setdefault(effect.location, msgspec.json.decode(effect.input))
        assert known == msgspec.json.decode(effect.input), effect.location
    return found


@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("name", STRUCTURES)
def test_retry_in_every_structure_ends_like_a_run_that_never_failed(name: str, order: int) -> None:
    graph = graph_of(STRUCTURES[name])
    whole = Play(graph, steady).to_the_end(order)
    assert whole.state.status == "completed"

    for node in graph.nodes:
        answer = Faulty(steady, lambda at, _, node=node: at == node)
        play = retried(graph, answer, order)

        assert answer.failed, node
        assert play.result() == whole.result(), node
        assert given(play) == given(whole), node


def test_a_failure_that_nobody_takes_leaves_tokens_and_frames_as_they_stood() -> None:
    play = Play(graph_of(INSIDE_ALL), Faulty(steady, lambda node, _: node == "c"))
    play.reply_at("a")
    play.reply_at("b")
    before = (set(play.state.tokens), set(play.state.frames))

    play.reply_at("c")

    assert play.state.status == "failed"
    assert (set(play.state.tokens), set(play.state.frames)) == before
    assert not play.open
    (letter,) = play.state.letters.values()
    assert letter.node == "c"
    play.tell(c.RetryRun())
    assert [play.node_of(number) for number in play.open] == ["c"]


def test_what_was_stopped_is_handed_out_again_with_what_failed() -> None:
    play = Play(graph_of(INSIDE_ALL), Faulty(steady, lambda node, _: node == "c"))
    play.reply_at("a")
    play.reply_at("c")

    assert play.state.status == "failed"
    play.tell(c.RetryRun())

    assert sorted(play.node_of(number) for number in play.open) == ["b", "c"]


def test_too_few_branches_after_failures_repeats_every_branch_that_failed() -> None:
    """Of four two are needed: the join goes on without the first two failures, the third ends the run."""
    nodes = {
        "a": {**WORK, "next": [{"to": ["b", "c", "d", "f"]}]},
        **{name: {**WORK, "next": "j"} for name in "bcdf"},
        "j": {**WORK, "join": {"at_least": 2}},
    }
    play = Play(graph_of(nodes), Faulty(steady, lambda node, _: node in ("b", "c", "d")))
    for node in "afbcd":
        play.reply_at(node)

    assert (play.state.status, play.code) == ("failed", "not_enough")
    assert play.state.failure is not None
    assert play.state.failure.attributes["failures"].keys() == {"0", "1", "2"}
    assert "boom" in play.state.failure.cause
    assert [letter.node for letter in play.state.letters.values()] == ["b", "c", "d"]
    play.tell(c.RequeueLetter(next(iter(play.state.letters))))

    assert not play.state.letters
    assert sorted(play.node_of(number) for number in play.open) == ["b", "c", "d"]
    play.reply_at("c")
    play.reply_at("j")
    assert play.state.status == "completed"
    joined = next(value for place, value in given(play).items() if place.startswith("j/"))
    assert [one["from"] for one in joined] == ["c", "f"]


def test_a_join_without_enough_branches_left_repeats_those_that_failed_not_those_that_ended() -> None:
    nodes = {
        "a": {**WORK, "next": [{"to": ["b", "c", "d"]}]},
        "b": {**WORK, "next": "j"},
        "c": {**WORK, "next": [{"to": "j", "when": "output.missing"}], "on_no_match": "end"},
        "d": {**WORK, "next": "j"},
        "j": {**WORK, "join": {"at_least": 2}},
    }
    play = Play(graph_of(nodes), Faulty(steady, lambda node, _: node == "b"))
    for node in "abc":
        play.reply_at(node)
    assert (play.state.status, play.code) == ("failed", "not_enough")

    play.tell(c.RetryRun())

    assert sorted(play.node_of(number) for number in play.open) == ["b", "d"]
    assert play.to_the_end(0).state.status == "completed"


INSIDE_SOME = {
    "a": {**WORK, "next": [{"to": "b", "for_each": "${output.items}"}]},
    "b": {**WORK, "next": [{"to": ["c", "d"]}]},
    "c": {**WORK, "repeat": {"while": "output.again", "at_most": 30}, "next": "i"},
    "d": {**WORK, "next": "i"},
    "i": {**WORK, "join": {"at_least": 2}, "next": "j"},
    "j": {**WORK, "join": {"at_least": 3}},
}


@pytest.mark.parametrize("order", scale.first(4, range(20)))
def test_a_failed_branch_with_loops_and_frames_in_it_goes_on_where_it_was(order: int) -> None:
    """Of five branches three are needed. What succeeded in a branch is not performed again."""
    answer = Faulty(steady, lambda node, token: node in "cdi" and int(token[-1:], 16) < 11)

    play = retried(graph_of(INSIDE_SOME), answer, order)

    assert play.state.status == "completed"
    assert not [letter for token, letter in play.state.letters.items() if token in play.state.tokens]


def test_repeated_branches_keep_to_the_width_of_their_edge() -> None:
    nodes = {**WIDE, "j": {**WORK, "join": {"at_least": 4}}}
    nodes["a"] = {**WORK, "next": [{"to": "b", "for_each": "${output.items}", "width": 1}]}
    play = Play(graph_of(nodes), Faulty(steady, lambda node, _: node == "b"))
    play.reply_at("a")
    play.reply_at("b")
    play.reply_at("b")
    assert (play.state.status, play.code) == ("failed", "not_enough")

    play.tell(c.RetryRun())

    for _ in range(2):
        assert [play.node_of(number) for number in play.open] == ["b"]
        play.reply_at("b")
    while play.state.status != "completed":
        if play.state.status == "failed":
            play.tell(c.RetryRun())
        assert len(play.open) == 1
        play.reply(*play.open)


def test_a_branch_that_a_join_went_on_without_is_not_repeated() -> None:
    """The join has fired: somebody took the failure."""
    nodes = {**SOME, "j": {**WORK, "join": {"at_least": 2}, "next": "end"}, "end": WORK}
    play = Play(graph_of(nodes), Faulty(steady, lambda node, _: node in ("b", "end")))
    for node in ("a", "b", "c", "d", "j", "end"):
        play.reply_at(node)
    gone, _ = play.state.letters
    with pytest.raises(Refused, match="continued without it"):
        play.tell(c.RequeueLetter(gone))

    play.tell(c.RetryRun())

    assert [play.node_of(number) for number in play.open] == ["end"]
    assert list(play.state.letters) == [gone]


def test_too_few_branches_without_a_failure_fails_again_and_hands_nothing_out() -> None:
    nodes = {
        "a": {**WORK, "next": [{"to": "b", "for_each": "${output.none}"}]},
        "b": {**WORK, "next": "j"},
        "j": {**WORK, "join": {"at_least": 2}},
    }
    play = Play(graph_of(nodes), lambda *_: {"none": [1]})
    play.reply_at("a")
    assert (play.state.status, play.code) == ("failed", "not_enough")
    tokens = set(play.state.tokens)

    play.tell(c.RetryRun())

    assert (play.state.status, play.code) == ("failed", "not_enough")
    assert set(play.state.tokens) == tokens
    assert not any(effect.location.startswith("j/") for effect in play.handed_out)


def test_a_handler_that_failed_is_tried_again_with_the_error_it_handles() -> None:
    nodes = {
        "a": {**WORK, "catch": [{"to": "h"}]},
        "h": {**WORK, "next": "y"},
        "y": WORK,
    }
    graph = graph_of(nodes)
    play = Play(graph, Faulty(steady, lambda node, _: node in ("a", "h")))
    play.reply_at("a")
    play.reply_at("h")
    assert play.state.status == "failed"
    token = next(token for token in play.state.tokens.values() if token.node == "h")

    play.tell(c.RetryRun())

    assert token.error is not None
    assert token.error.step == "a"
    assert [play.node_of(number) for number in play.open] == ["h"]
    play.to_the_end(0)
    assert play.state.status == "completed"


def test_a_failure_is_taken_by_the_outermost_fan_in_that_has_an_edge_for_it() -> None:
    nodes = {**NESTED, "j": {**WORK, "join": "all", "catch": [{"to": "h"}]}, "h": WORK}
    play = Play(graph_of(nodes), Faulty(steady, lambda node, _: node == "d")).to_the_end(1)

    assert play.state.status == "completed"
    assert play.state.executed["h"] == 1
    assert "j" not in play.state.executed
    raised = [event for event in play.log if isinstance(event, e.FailureRaised)]
    assert [event.node for event in raised] == ["d"]
    assert not play.state.frames


# --- at random ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", scale.first(6, range(60)))
def test_drawn_graphs_that_wait_for_all_end_like_runs_that_never_failed(seed: int) -> None:
    graph = load_graph(well_nested(seed, early=False, failures=False)).graph
    answers = drawn_answers(seed)
    whole = Play(graph, answers, watched=False).to_the_end(seed)
    answer = Faulty(answers, lambda _, token: int(token[:2], 16) < 80)

    play = retried(graph, answer, seed)

    assert play.state.status == whole.state.status
    if whole.state.status == "completed":
        assert play.result() == whole.result()
        assert given(play) == given(whole)


@pytest.mark.parametrize("seed", scale.first(6, range(60)))
def test_drawn_graphs_with_everything_in_them_come_to_an_end_by_retries(seed: int) -> None:
    """Nothing that succeeded is performed again, and every failure that a retry can mend is mended."""
    graph = load_graph(well_nested(seed)).graph
    answer = Faulty(drawn_answers(seed), lambda _, token: int(token[:2], 16) < 50)

    play = retried(graph, answer, seed)

    assert play.state.status == "completed" or play.code in FATAL
