"""``weft delete`` and ``weft keep``."""

from pathlib import Path

from tests.cli.conftest import Weft


def test_a_run_is_deleted_with_a_reason(weft: Weft) -> None:
    assert weft("run", "app.py", "hello", "name=a", "--id", "one").code == 0

    assert weft("delete", "one").code == 2
    said = weft("delete", "one", "--reason", "asked to")
    assert (said.code, said.out.split(":")[0]) == (0, "one deleted")
    assert weft("show", "one").code != 0
    assert weft("run", "app.py", "hello", "name=b", "--id", "one").code == 0


def test_a_hold_is_put_shown_and_ended(weft: Weft) -> None:
    assert weft("run", "app.py", "hello", "name=a", "--id", "one").code == 0

    assert "is not kept" in weft("keep", "one").out
    assert "are kept by bob" in weft("keep", "one", "--reason", "a court", "--by", "bob").out
    refused = weft("delete", "one", "--reason", "asked to")
    assert refused.code != 0
    assert "A hold lies on one" in refused.err
    assert weft("keep", "one", "--end").out == "The hold on one and all runs below it has ended.\n"
    assert weft("keep", "one", "--end", "--json").json()["kept"] is False
    assert weft("delete", "one", "--reason", "asked to", "--json").json()["runs"] == 1


def test_old_runs_are_collected(weft: Weft) -> None:
    for name in ("one", "two"):
        assert weft("run", "app.py", "hello", "name=a", "--id", name).code == 0

    refused = weft("gc")
    assert refused.code == 2
    assert "Nothing says how long runs are kept" in refused.err
    assert weft("keep", "two", "--reason", "a court").code == 0
    assert "1 run in 1 tree would be deleted" in weft("gc", "--older", "0s", "--dry-run").out
    said = weft("gc", "--older", "0s", "--where", "workflow=hello").out
    assert "1 run in 1 tree deleted" in said
    assert "Trees that stay: 1 (a hold lies on them)" in said
    assert weft("gc", "--older", "1d", "--json").json()["trees"] == 0


def test_trees_are_exported_before_they_are_deleted(weft: Weft, folder: Path) -> None:
    assert weft("run", "app.py", "hello", "name=a", "--id", "a/one").code == 0

    assert "would be deleted" in weft("gc", "--older", "0s", "--export", "kept", "--dry-run").out
    assert not Path("kept").exists()
    Path("file").write_text("")
    refused = weft("gc", "--older", "0s", "--export", "file")
    assert (refused.code, "cannot be written" in refused.err) == (2, True)
    assert "1 tree deleted" in weft("gc", "--older", "0s", "--export", "kept").out
    (bundle,) = Path("kept").iterdir()
    assert bundle.name.startswith("a-one~")
    assert weft("show", "a/one").code != 0
    assert weft("import", str(bundle)).out == "a/one\n"


def test_the_status_says_how_fast_the_store_grows(weft: Weft) -> None:
    assert weft("run", "app.py", "hello", "name=a").code == 0

    assert "1 of 1 runs are of the last day" in " ".join(weft("status").out.split())
    assert weft("status", "--json").json()["retention"] is False
