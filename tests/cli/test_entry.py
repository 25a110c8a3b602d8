"""Where the command line begins and ends: exit codes, words on stderr, no stack trace, no needless import."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import weft as package
from tests.cli.conftest import Weft
from weft.observe.error_pages import PAGES

VERBS = "run start list show events watch explain inbox status send decide patch cancel pause resume retry help version"


def test_the_help_lists_every_verb_with_a_line_about_it(weft: Weft) -> None:
    said = weft("--help")

    lines = [line.split() for line in said.out.splitlines() if line.startswith("  ")]
    assert said.code == 0
    assert [words[0] for words in lines if words[0] in VERBS.split() and len(words) > 2] == VERBS.split()


def test_the_help_cuts_no_sentence_off(weft: Weft) -> None:
    assert "..." not in weft("--help").out.split("Run:", 1)[1]


@pytest.mark.parametrize("verb", VERBS.split())
def test_every_verb_explains_itself(weft: Weft, verb: str) -> None:
    said = weft(verb, "--help")

    assert said.code == 0
    assert f"Usage: weft {verb}" in said.out
    assert "Show this message" in said.out


def test_without_a_verb_the_help_is_printed(weft: Weft) -> None:
    said = weft()

    assert "Steer:" in said.out
    assert said.code == 2


def test_a_misspelt_verb_is_a_usage_error_that_names_the_nearest(weft: Weft) -> None:
    said = weft("lst")

    assert said.code == 2
    assert "'list'" in said.err
    assert "More: weft --help" in said.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["show"], "Missing argument 'RUN'"),
        (["run"], "Missing argument '[FILE[:NAME]] WORKFLOW"),
        (["list", "--nonsense"], "No such option"),
        (["list", "--limit", "many"], "'many' is not a number"),
        (["list", "--limit", "0"], "at least 1"),
        (["events", "x", "--after", "-1"], "'-1' is not a number"),
        (["decide", "x:ship", "perhaps"], "neither approve nor reject"),
    ],
)
def test_a_wrong_command_line_is_told_apart_from_a_refusal(weft: Weft, words: list[str], problem: str) -> None:
    said = weft(*words)

    assert said.code == 2
    assert problem.lower() in said.err.lower()
    assert "Usage: weft" in said.err
    assert not said.out


def test_a_refusal_says_what_happened_what_to_do_and_where_to_read_more(over: Weft) -> None:
    said = over("show", "nobody")

    assert said.code == 1
    assert said.err == (
        "weft: No run 'nobody' in sqlite:///weft.db.\n"
        "      weft list shows what is there; --url names another store.\n"
        "      More: weft help run.not_found\n"
    )


def test_a_bug_is_one_line_unless_the_trace_is_asked_for(
    weft: Weft, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "odd.py").write_text(
        "import weft\nclass Odd(weft.App):\n    url = property(lambda self: {}['nowhere'])\napp = Odd()\n"
    )

    said = weft("list", "--app", "odd.py")
    monkeypatch.setenv("WEFT_DEBUG", "1")
    traced = weft("list", "--app", "odd.py")

    assert said.code == traced.code == 1
    assert said.err.startswith("weft: an error in Weft itself: KeyError: 'nowhere'\n")
    assert "Traceback" not in said.err
    assert "Traceback" in traced.err


def test_the_version_is_that_of_the_package(weft: Weft) -> None:
    assert weft("version").out == f"{version('weft')}\n"


def test_the_version_is_an_option_too(weft: Weft) -> None:
    assert weft("--version") == weft("version")


@pytest.mark.parametrize(
    ("line", "expected"), [("weft sho", {"show"}), ("weft show --", {"--tree", "--svg", "--json", "--url", "--app"})]
)
def test_a_shell_completes_verbs_and_options(folder: Path, executable: str, line: str, expected: set[str]) -> None:
    asked = {"_WEFT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}

    said = subprocess.run([executable], cwd=folder, env=asked, capture_output=True, text=True, check=True)

    assert expected <= set(said.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_completion_is_printed(folder: Path, executable: str, shell: str) -> None:
    asked = {"_WEFT_COMPLETE": f"source_{shell}"}

    said = subprocess.run([executable], cwd=folder, env=asked, capture_output=True, text=True, check=True)

    assert "_WEFT_COMPLETE" in said.stdout


def test_a_code_is_explained(weft: Weft) -> None:
    said = weft("help", "run.id_taken")

    assert said.code == 0
    assert said.out.startswith("run.id_taken\n")
    assert PAGES["run.id_taken"].todo in said.out


@pytest.mark.parametrize("typed", ["run.id_tkaen", "id_taken"])
def test_an_unknown_code_is_refused_with_the_nearest(weft: Weft, typed: str) -> None:
    said = weft("help", typed)

    assert said.code == 2
    assert f'No error has the code "{typed}". Did you mean "run.id_taken"?' in said.err


def test_help_without_a_code_lists_all_of_them(weft: Weft) -> None:
    listed = [line.split()[0] for line in weft("help").out.splitlines()]

    assert listed == list(PAGES)


def loaded_after(folder: Path, *commands: list[str]) -> set[str]:
    """What a fresh process has imported after these commands."""
    code = f"import sys; from weft.cli import main; [main(c) for c in {list(commands)!r}]; print('|', *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return set(said.stdout.rpartition("|")[2].split())


def test_help_costs_no_engine_no_store_and_no_drawing(folder: Path) -> None:
    loaded = loaded_after(folder, ["--help"])

    assert "typer" in loaded
    assert not loaded & {"pydantic", "rich.console", "apsw", "weft.runtime.service", "weft.authoring.app"}


def test_looking_at_runs_costs_no_pydantic_and_no_app(over: Weft, folder: Path) -> None:
    loaded = loaded_after(
        folder, ["list"], ["show", "order-1"], ["explain", "order-1", "--json"], ["inbox"], ["events", "order-1"]
    )

    assert "apsw" in loaded
    assert not loaded & {"pydantic", "weft.authoring.app"}


def test_every_public_name_is_found_at_first_use(folder: Path) -> None:
    code = "import weft, sys; assert 'msgspec' not in sys.modules; [getattr(weft, name) for name in weft.__all__]"

    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_reader_that_goes_away_is_no_error(weft: Weft, folder: Path, executable: str) -> None:
    weft("run", "app.py", "order", "order_id=o-1", "n=200", "--id", "big")
    with subprocess.Popen(
        [executable, "show", "big", "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()

    assert said == b""
    assert process.returncode == 0


def test_words_that_the_terminal_cannot_show_do_not_end_the_program(weft: Weft, folder: Path, executable: str) -> None:
    weft("run", "app.py", "order", "order_id=ö☃", "--id", "o-1")

    said = subprocess.run(
        [executable, "show", "o-1"],
        cwd=folder,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "o-1  completed" in said.stdout
    assert "?" in said.stdout
