"""What random graphs have found, each as the smallest graph that shows it."""

from __future__ import annotations

from typing import Any

from tests.graph.random_plays import Play, replayed
from weft.graphs.load import load_graph


class Told(Play):
    """A run whose tasks are answered by the names of their nodes."""

    def __init__(self, nodes: dict[str, Any], answers: dict[str, Any] | None = None) -> None:
        known = answers or {}
        graph = load_graph({"nodes": {name: {"step": "s", **node} for name, node in nodes.items()}}).graph
        super().__init__(graph, lambda node, _: known.get(node, {}))

    def node_of(self, number: int) -> str:
        return self.state.tokens[self.state.by_task[number]].node

    def at(self, *names: str) -> None:
        """Answer the oldest open task of each of these nodes in turn."""
        for name in names:
            self.reply(next(number for number in self.numbers() if self.node_of(number) == name))

    def ended(self) -> str:
        self.to_the_end(0)
        assert replayed(self.graph, self.log) == self.machine.snapshot()
        return f"{self.state.status} {self.code}".strip()


ABANDONED = {
    "o": {"next": [{"to": "p", "copies": 2}]},
    "p": {"next": [{"to": ["a", "b"]}]},
    "a": {"next": [{"to": ["x", "y"]}]},
    "x": {"next": "e"},
    "y": {"next": "e"},
    "e": {"join": "edges", "next": "i"},
    "b": {"next": "i"},
    "i": {"join": "any", "late": "abandon", "of": "p", "next": "j"},
    "j": {"join": "all", "of": "o"},
}


def test_a_join_in_a_branch_that_was_abandoned_half_full_still_fires() -> None:
    play = Told(ABANDONED)

    play.at("o", "p", "p", "a", "x", "b", "i", "y", "e")

    assert play.state.executed["e"] == 1
    assert play.ended() == "completed"


def test_a_frame_in_a_frame_that_was_abandoned_comes_to_its_end() -> None:
    nodes = {
        **ABANDONED,
        "a": {"next": [{"to": "q", "copies": 2}]},
        "q": {"next": [{"to": "x", "copies": 2}]},
        "x": {"next": "e"},
        "e": {"join": "all", "of": "q", "next": "f"},
        "f": {"join": "all", "of": "a", "next": "i"},
    }
    del nodes["y"]
    play = Told(nodes)

    play.at("o", "p", "p", "a", "q", "x", "b", "i")

    assert play.ended() == "completed"
    assert play.state.executed["f"] == 2


def test_what_was_abandoned_outlives_the_branch_around_it() -> None:
    nodes = {**ABANDONED, "j": {"join": "any", "late": "cancel", "of": "o"}}
    play = Told(nodes)

    play.at("o", "p", "p", "b", "i")

    assert play.state.executed.get("j") is None
    assert sorted(play.node_of(number) for number in play.numbers()) == ["a", "j"]
    assert play.ended() == "completed"
    assert play.state.executed["e"] == 1


def test_a_branch_that_failed_in_a_loop_is_gone_when_the_others_are_abandoned() -> None:
    again = {"repeat": {"while": "output.again", "at_most": 3, "exhausted": []}}
    nodes = {
        "o": {"next": [{"to": "p", "copies": 1}]},
        "p": {"next": [{"to": ["a", "b", "c"]}]},
        "a": {**again, "next": "i"},
        "b": {"next": "i"},
        "c": {**again, "next": "i"},
        "i": {"join": "any", "late": "abandon", "of": "p", "next": "j"},
        "j": {"join": "all", "of": "o"},
    }
    play = Told(nodes, {"a": "boom"})

    play.at("o", "p", "a", "b")

    assert play.ended() == "completed"


def test_a_fan_in_that_fails_enters_the_loop_it_heads() -> None:
    nodes = {
        "o": {"next": [{"to": "a", "copies": 2}]},
        "a": {"next": "i"},
        "i": {"join": "any", "next": "l", "catch": "h"},
        "h": {"next": "l"},
        "l": {"repeat": {"while": "output.again", "at_most": 2, "back_to": "i", "exhausted": []}},
    }
    play = Told(nodes, {"a": "boom", "l": {"again": True}})

    assert play.ended() == "completed"
    assert play.state.executed == {"o": 1, "h": 1, "l": 2, "i": 1}
