"""From the name of a file to the app in it; what is wrong with the file is said in one sentence, without a trace."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from weft.cli.app_file import load_app
from weft.errors import RunAtImport, UnknownWorkflow, UsageError

TWO = "import weft\nfirst = weft.App()\nsecond = weft.App()\n@second.workflow\nasync def two() -> int:\n    return 2\n"


@pytest.fixture(autouse=True)
def in_the_folder(folder: Path) -> None:
    (folder / "two.py").write_text(TWO)


def refusal(target: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_app(target, "weft run")
    return str(caught.value)


@pytest.mark.parametrize("target", ["app.py", "app.py:app", "./app.py", "app", "app:app"])
def test_an_app_is_found_by_file_or_by_module(target: str) -> None:
    assert load_app(target).workflow("hello").name == "hello"


def test_of_several_apps_one_must_be_named(weft: Weft) -> None:
    assert refusal("two.py") == "two.py has several apps: first, second. Name one: two.py:first"
    assert weft("run", "two.py:second", "two").out == "2\n"


def test_two_names_of_one_app_are_one_app(folder: Path) -> None:
    (folder / "alias.py").write_text("import weft\napp = weft.App()\nservice = app\n")

    assert load_app("alias.py").name == "alias.py"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n", "There is no weft.App in odd.py. Add a line such as: app = weft.App()"),
        ("import nowhere\n", "odd.py cannot be imported: ModuleNotFoundError: No module named 'nowhere' (odd.py:1)."),
        (
            "def f():\n    return 1 / 0\n\nf()\n",
            "odd.py cannot be imported: ZeroDivisionError: division by zero (odd.py:2).",
        ),
        ("a =\n", "odd.py cannot be imported: SyntaxError: invalid syntax (odd.py:1)."),
        ("import sys\nsys.exit(3)\n", "odd.py exits while it is imported."),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(folder: Path, source: str, problem: str) -> None:
    (folder / "odd.py").write_text(source)

    assert refusal("odd.py").startswith(problem)


def test_a_name_that_is_no_app_is_refused() -> None:
    assert refusal("app.py:charge") == "charge in app.py is not a weft.App. Apps there: app"


def test_a_missing_file_is_named_with_those_that_are_there() -> None:
    assert refusal("ap.py") == "There is no file ap.py. Python files here: app.py, two.py"


def test_a_missing_module_is_named() -> None:
    assert "No module named 'nowhere_at_all'" in refusal("nowhere_at_all")


def test_running_at_import_is_refused_with_the_line_to_write(folder: Path, weft: Weft) -> None:
    (folder / "eager.py").write_text(
        "import weft\napp = weft.App()\n@app.workflow\nasync def go() -> int:\n    return 1\napp.run(go())\n"
    )

    said = weft("run", "eager.py", "go")

    assert said.code == 2
    assert said.err.startswith(
        'weft: eager.py calls app.run() while weft run imports it.\n      Put it under: if __name__ == "__main__":\n'
    )
    assert "WEFT_IMPORTING" not in os.environ
    assert not (folder / "weft.db").exists()
    with pytest.raises(RunAtImport):
        load_app("eager.py")


def test_a_file_called_like_a_loaded_module_does_not_take_its_place(folder: Path) -> None:
    (folder / "types.py").write_text((folder / "app.py").read_text())
    before = sys.modules["types"]

    load_app("types.py")

    assert sys.modules["types"] is before


def test_the_file_may_import_its_neighbours(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "billing.py").write_text("RATE = 3\n")
    (folder / "deep" / "main.py").write_text("import weft\nfrom billing import RATE\napp = weft.App()\n")

    assert load_app("deep/main.py").name == "deep/main.py"


def test_an_unknown_workflow_names_the_file_and_what_it_has() -> None:
    with pytest.raises(UnknownWorkflow) as caught:
        load_app("app.py").workflow("ordr")

    assert caught.value.message == 'No workflow "ordr" in app.py. Did you mean "order"?'
    assert caught.value.hint == "Known: doomed, family, hello, order, patient."
