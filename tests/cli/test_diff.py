"""``weft diff``: runs, versions and files; the exit code says whether they differ."""

from pathlib import Path
from typing import Any

from tests.cli.conftest import Weft

ONE = "name: g\nnodes:\n  a: {step: s, next: b}\n  b: {step: s}\n"
TWO = "name: g\nnodes:\n  a: {step: s, next: c}\n  b: {step: s}\n  c: {step: s, next: b}\n"


def test_runs_are_compared(over: Weft) -> None:
    said = over("diff", "order-1", "doomed-1")
    assert said.code == 1
    assert "First divergence: the run, input" in said.out
    assert "Only in doomed-1" in said.out
    assert over("diff", "order-1", "order-1").code == 0
    assert over("diff", "order-1", "nothing").code == 2
    assert over("diff", "order-1", "doomed-1", "--at-a", "x").code == 2


def test_a_diff_is_printed_as_json(over: Weft) -> None:
    said = over("diff", "order-1", "doomed-1", "--json")
    assert said.code == 1
    assert '"only_b":["decline"]' in said.out.replace(" ", "").replace("\n", "")


def test_files_are_compared(weft: Weft, folder: Path) -> None:
    (folder / "one.yaml").write_text(ONE)
    (folder / "two.yaml").write_text(TWO)

    said = weft("diff", "one.yaml", "two.yaml")
    assert said.code == 1
    for part in ("+ c", "+ a>c", "- a>b", '"path":"/nodes/c"'):
        assert part in said.out
    same: Any = weft("diff", "one.yaml", "one.yaml", "--json").json()
    assert same["equal"] is True
