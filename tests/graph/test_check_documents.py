"""Checking from a document, from the builder and from the command line: the same findings, at their places."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import weft
from weft.cli.check import check_documents
from weft.errors import NotFound, UsageError
from weft.graphs.check import check_document

STUCK = """\
name: stuck
nodes:
  a: {pass: true, next: [{to: [b, c, e]}]}
  b: {pass: true, next: d}
  c: {pass: true, next: d}
  d: {pass: true, next: f}
  e: {pass: true, next: f}
  f:
    pass: true
    join: edges
"""
SOUND = "name: fine\nnodes: {a: {pass: true, next: b}, b: {pass: true}}\n"
REFUSED = "name: wrong\nnodes: {a: {pass: true, next: bb}, b: {pass: true}}\n"


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_document_is_checked_with_the_lines_of_its_nodes(tmp_path: Path) -> None:
    checked = check_document(written(tmp_path, "stuck.yaml", STUCK))

    assert checked.outcome == "unsound"
    assert [(each.code, each.path, each.file, each.line) for each in checked.findings] == [
        ("graph.deadlock", "nodes.f", "stuck.yaml", 8),
        ("graph.entered_twice", "nodes.d", "stuck.yaml", 6),
    ]
    assert "Shown by: a -> b, c, e;" in str(checked.findings[0])


def test_nodes_in_a_list_have_lines_too(tmp_path: Path) -> None:
    listed = "nodes:\n  - {id: a, pass: true, next: [{to: b, when: 'false'}, {to: c}]}\n"
    listed += "  - {id: b, pass: true}\n  - {id: c, pass: true}\n"

    (finding,) = check_document(written(tmp_path, "listed.yaml", listed)).findings

    assert (finding.code, finding.path, finding.line) == ("graph.unreachable_terminal", "nodes.b", 3)


def test_a_document_that_does_not_compile_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    checked = check_document(written(tmp_path, "wrong.yaml", REFUSED))

    assert checked.outcome == "refused"
    assert not checked.ok
    assert checked.findings[0].suggestion == 'Did you mean "b"?'


def test_the_builder_checks_what_it_has_built() -> None:
    graph = weft.Graph("orders")
    a, b, c, e = (graph.node(name, "s") for name in "abce")
    d = graph.node("d", "s")
    f = graph.node("f", "s")
    a.to(b, c, e)
    b.to(d)
    c.to(d)
    d.to(f)
    e.to(f)
    note = [finding.code for finding in graph.check()]
    document = graph.to_dict()
    document["nodes"]["f"]["join"] = "edges"

    assert note == ["graph.entered_twice", "graph.entered_twice"]
    assert weft.Graph.of(document).check()[0].code == "graph.deadlock"


def test_the_builder_tells_first_what_does_not_compile() -> None:
    graph = weft.Graph("orders")
    graph.node("a", "s").to(graph.node("b", "s"), when="nonsense +")

    assert [finding.severity for finding in graph.check()] == ["error"]


def test_the_terminal_shows_the_way_into_a_deadlock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [written(tmp_path, "stuck.yaml", STUCK), written(tmp_path, "fine.yaml", SOUND)]

    assert check_documents(paths, json=False) == 1

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0].endswith("stuck.yaml  stuck  6 nodes  unsound")
    assert lines[1].startswith("error  8 nodes.f: f may wait forever")
    assert lines[2] == "a -> b, c, e"
    assert lines[-1].endswith("fine.yaml  fine  2 nodes  sound")


def test_programs_get_the_moves_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_documents([written(tmp_path, "stuck.yaml", STUCK)], json=True) == 1

    (graph,) = msgspec.json.decode(capsys.readouterr().out)["graphs"]
    assert graph["outcome"] == "unsound"
    assert graph["findings"][0]["code"] == "graph.deadlock"
    assert graph["findings"][0]["severity"] == "error"
    assert graph["findings"][0]["moves"][0] == "a -> b, c, e"


def test_sound_documents_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_documents([written(tmp_path, "fine.yaml", SOUND)], json=True) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["graphs"][0]["findings"] == []


def test_the_graphs_of_an_app_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "stuck_graph.yaml", STUCK)
    app = 'import weft\n\napp = weft.App("memory://")\nstuck = app.graph("stuck_graph.yaml")\n'

    assert check_documents([written(tmp_path, "checked_app.py", app)], json=False) == 1
    assert "f may wait forever" in capsys.readouterr().out


def test_an_app_without_graphs_has_nothing_to_check(tmp_path: Path) -> None:
    app = written(tmp_path, "empty_app.py", 'import weft\n\napp = weft.App("memory://")\n')

    with pytest.raises(UsageError, match="no graph"):
        check_documents([app], json=False)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nowhere\.yaml"):
        check_documents([str(tmp_path / "nowhere.yaml")], json=False)
