"""The table of patterns, the documents and programs behind it, and their tests agree with each other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.patterns import test_graphs, test_programs
from tests.patterns.kit import DOCUMENTS, PROGRAMS, Bench, went
from weft.errors import BadGraph
from weft.graphs.load import load_graph

PAGE = Path(__file__).parents[2] / "docs" / "patterns.md"
ROW = re.compile(
    r"^\| (\d+) \| (?:\[([^\]]+)\]\(([^)]+)\)|([^|\[]+)) \| (graph|code|partly|no) \| (.+) \|$", re.MULTILINE
)


class Row(NamedTuple):
    number: int
    name: str
    link: str
    done: str
    how: str


def rows() -> list[Row]:
    found = ROW.findall(PAGE.read_text("utf-8"))
    return [Row(int(number), linked or plain, link, done, how) for number, linked, link, plain, done, how in found]


def words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower())


def told(done: str) -> dict[int, str]:
    return {row.number: words(row.name) for row in rows() if row.done == done}


def kept(folder: Path, pattern: str) -> dict[int, str]:
    """Number and name of each file there."""
    stems = [path.stem.removeprefix("p") for path in folder.glob(pattern)]
    return {int(stem[:2]): words(stem[3:]) for stem in stems}


def numbers_tested(module: object) -> set[int]:
    return {int(found[1]) for name in dir(module) if (found := re.match(r"test_(\d\d)_", name))}


def test_the_table_has_the_43_patterns_in_their_order() -> None:
    assert [row.number for row in rows()] == list(range(1, 44))
    assert PAGE.read_text("utf-8").count("\n| ") == 44, "and no row that cannot be read"
    assert len({row.name for row in rows()}) == 43


def test_every_graph_of_the_table_has_a_document_of_its_number_and_name() -> None:
    assert told("graph") == kept(DOCUMENTS, "*")


def test_every_code_of_the_table_has_a_program_of_its_number_and_name() -> None:
    assert told("code") == kept(PROGRAMS, "p*.py")


@pytest.mark.parametrize("row", [row for row in rows() if row.link], ids=lambda row: f"{row.number}")
def test_the_name_of_a_pattern_leads_to_its_own_file(row: Row) -> None:
    stem = Path(row.link).stem.removeprefix("p")

    assert (PAGE.parent / row.link).exists()
    assert (int(stem[:2]), words(stem[3:])) == (row.number, words(row.name))


def test_every_pattern_that_is_done_is_tested() -> None:
    assert numbers_tested(test_graphs) == set(told("graph"))
    assert numbers_tested(test_programs) == set(told("code"))


def test_the_page_counts_right() -> None:
    counted = Counter(row.done for row in rows())
    done = counted["graph"] + counted["code"]

    text = f"{done} of 43 are supported: {counted['graph']} as graphs, {counted['code']} in code."
    assert text in PAGE.read_text("utf-8")
    assert done >= 30
    assert counted["graph"] >= 25


TWO_ENTRIES = {
    "nodes": {
        "begin": {"pass": True, "next": [{"when": 'input.first == "write"', "to": "write"}, {"to": "read"}]},
        "write": {"step": "write", "next": "read"},
        "read": {"step": "read", "repeat": {"until": "output.done", "back_to": "write", "at_most": 5}},
    }
}

ONE_ENTRY = {
    "nodes": {
        "begin": {"pass": True, "save": {"state.turn": "${input.first}"}, "next": "choose"},
        "choose": {"pass": True, "next": [{"when": 'state.turn == "write"', "to": "write"}, {"to": "read"}]},
        "write": {"step": "write", "save": {"state.turn": "read"}, "next": "choose_again"},
        "read": {"step": "read", "save": {"state.turn": "write"}, "next": "choose_again"},
        "choose_again": {"pass": True, "repeat": {"until": "output.done", "back_to": "choose", "at_most": 9}},
    }
}


def test_a_loop_with_two_entries_is_refused_by_its_name() -> None:
    """What the page says about arbitrary cycles."""
    with pytest.raises(BadGraph) as refused:
        load_graph(TWO_ENTRIES)
    assert "irreducible_loop" in str(refused.value.context)


@pytest.mark.parametrize(
    ("first", "way"), [("write", ["write", "read", "write", "read"]), ("read", ["read", "write", "read"])]
)
def test_a_loop_with_two_entries_runs_behind_one_node_that_chooses(first: str, way: list[str]) -> None:
    bench = Bench(ONE_ENTRY, {"write": {"done": False}, "read": [{"done": False}, {"done": True}]})
    run = bench.start(first=first)

    run.result()
    assert [node for node in went(run) if node in ("write", "read")] == way
