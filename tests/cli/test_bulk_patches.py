"""``weft patch`` for many runs: the file comes last, and the dry run of each run is what is applied."""

from pathlib import Path

from tests.cli.conftest import Weft
from tests.cli.test_bulk import document, host_until_done

GRAPH = """
weft: graph/1
name: leads
nodes:
  wait: {receive: go, next: price}
  price: {pass: true}
"""
APP = """
import weft

app = weft.App()
app.graph("leads.yaml")


@app.workflow
async def hello(name: str) -> str:
    return f"hello {name}"
"""
PATCH = """
ops:
  - {op: add, path: /nodes/bill, value: {pass: true}}
  - {op: add, path: /nodes/price/next, value: bill}
"""


def test_many_runs_are_patched_and_that_is_undone(weft: Weft, folder: Path) -> None:
    (folder / "leads.yaml").write_text(GRAPH)
    (folder / "app.py").write_text(APP)
    (folder / "patch.yaml").write_text(PATCH)
    for n in range(2):
        assert weft("start", "leads", "--id", f"l-{n}").code == 0
    assert weft("run", "app.py", "hello", "name=a").code == 0

    counted = weft("patch", "patch.yaml", "--workflow", "leads", "--dry-run")

    assert counted.code == 0
    assert counted.out.startswith("patch: 2 runs, 2 would apply, 0 refused.")
    done = document(weft, "patch", "l-0", "l-1", "patch.yaml", "--apply", "--reason", "more")
    assert host_until_done(weft, done["run"])["applied"] == 2
    assert len(document(weft, "show", "l-0", "--versions")["versions"]) == 2
    undone = document(weft, "patch", "--workflow", "leads", "--undo", "--apply")
    assert host_until_done(weft, undone["run"])["applied"] == 2
    assert "many runs have a plan each" in weft("patch", "p.yaml", "--workflow", "leads", "--expect", "x").err
