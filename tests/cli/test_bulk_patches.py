"""``weft patch`` for many runs: the file comes last, and the dry run of each run is what is applied."""

from pathlib import Path

from tests.cli.conftest import Weft, hosting
from tests.cli.test_bulk import document, host_until_done
from tests.cli.test_hosted import until

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
    (folder / "nothing.yaml").write_text("ops: []")
    nothing = weft("patch", "l-0", "nothing.yaml")
    assert (nothing.code, nothing.out) == (0, "l-0 is already as this patch would leave it, so nothing was changed\n")
    assert "0 would apply, 2 already so" in weft("patch", "nothing.yaml", "--workflow", "leads", "--apply").out
    done = document(weft, "patch", "l-0", "l-1", "patch.yaml", "--apply", "--reason", "more")
    assert host_until_done(weft, done["run"])["applied"] == 2
    assert len(document(weft, "show", "l-0", "--versions")["versions"]) == 2
    undone = document(weft, "patch", "--workflow", "leads", "--undo", "--apply")
    assert host_until_done(weft, undone["run"])["applied"] == 2
    again = document(weft, "patch", "l-0", "l-1", "--redo", "--apply")
    assert host_until_done(weft, again["run"])["applied"] == 2
    told = weft("show", "l-0", "--versions").out
    assert [told.count(word) for word in ("CHANGE", "undoes 1", "redoes 1")] == [1, 1, 1]
    assert [told.count(f'{mark} /nodes/price/next  "bill"') for mark in "+-"] == [2, 1]
    first, second, *_ = document(weft, "show", "l-0", "--versions")["versions"]
    assert "diff" not in first
    assert {"pointer": "/nodes/price/next", "b": "bill"} in second["diff"]
    (folder / "odd.yaml").write_text("{oops: 1}")
    odd = weft("patch", "l-0", "odd.yaml").err
    assert odd.startswith("weft: odd.yaml: The patch is not valid: object contains unknown field `oops`")
    assert "A patch of a graph run has weft, base, ops, document, to" in odd
    (folder / "alone.yaml").write_text("{drop: [{node: wait}]}")
    alone = weft("patch", "l-0", "alone.yaml").err
    assert "it has none of them; ops: [] if the document stays as it is (1 more)" in alone
    assert "also: a patch with instructions needs a reason." in alone
    assert "many runs have a plan each" in weft("patch", "p.yaml", "--workflow", "leads", "--expect", "x").err


def test_the_patch_of_one_run_waits_is_reviewed_and_is_withdrawn(weft: Weft, folder: Path) -> None:
    (folder / "leads.yaml").write_text(GRAPH)
    (folder / "app.py").write_text(APP)
    (folder / "patch.yaml").write_text(PATCH)
    (folder / "cut.yaml").write_text("document: {name: leads, nodes: {price: {pass: true}}}")
    with hosting(folder):
        assert weft("start", "leads", "--id", "l-0").code == 0
        until(weft, "l-0", "message_awaited")

        waits = weft("patch", "l-0", "cut.yaml", "--wait", "2h", "--reason", "no more waiting")
        review = weft("patch", "l-0", "patch.yaml", "--review", "team:ops").out
        question = review.partition("to decide: weft decide ")[2].split()[0]

        assert waits.out.startswith("l-0 waits to be patched")
        assert "a place where the patch of" in weft("explain", "l-0").out
        assert question in weft("inbox").out
        assert "somebody else has to decide" in weft("decide", question, "approve").err
        assert weft("decide", question, "approve", "--by", "bob").code == 0
        until(weft, "l-0", "patch_dropped")  # it was written against the version before
        assert [weft("patch", "l-0", how).code for how in ("--undo", "--redo")] == [0, 0]
    changes = weft("events", "l-0", "--changes").out
    assert [line.split()[2] for line in changes.splitlines()] == [
        "patch_asked", "patch_asked", "patch_review_asked", "run_patched", "patch_dropped",
        "run_patched", "run_patched",
    ]  # fmt: skip
    assert "has no patch that waits" in weft("patch", "l-0", "--withdraw", "0").err
    assert "one run at a time" in weft("patch", "cut.yaml", "--workflow", "leads", "--wait", "2h").err
