"""A setting cannot exist without its row in the table that the documentation is made from."""

import ast
import re
from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.ports.step_logs import LogLimits
from weft.runtime.patch_limits import PatchLimits
from weft.runtime.retention_policy import AGES, LEVELS, NEVER
from weft.settings import PROJECT, VARIABLES, project_keys, project_table, project_text, store_url, variable

SRC = Path(__file__).parents[2] / "src" / "weft"
TABLE = SRC / "settings.py"
READ_ELSEWHERE = {
    # Variables that users name, and that tell about their desktop or their shell.
    "steps/secrets.py": "secrets of users",
    "cli/ui.py": "the browser",
    "cli/entry.py": "completion, asked for by the shell",
    # The standard variables, which the SDK of OpenTelemetry documents and reads, too.
    "ext/otel/configuration.py": "OTEL_*",
    # A mark from the command line to the app that it imports, in one process.
    "cli/app_file.py": "WEFT_IMPORTING",
    "authoring/import_time.py": "WEFT_IMPORTING",
}
WORDS = {"environ", "getenv"}
MARKS = {"WEFT_IMPORTING", "WEFT_COMPLETE"}
NAMES = {setting.name for setting in VARIABLES}


def test_only_the_table_reads_the_environment() -> None:
    found = {path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if reads_environment(path)}

    assert found - {"settings.py"} == set(READ_ELSEWHERE), "read it by weft.settings.variable, with a row in its table"


def reads_environment(path: Path) -> bool:
    text = path.read_text("utf-8")
    return any(word in text for word in WORDS) and any(
        isinstance(node, ast.Attribute) and node.attr in WORDS for node in ast.walk(ast.parse(text))
    )


def test_every_variable_that_the_package_names_has_a_row_and_every_row_is_used() -> None:
    texts = [path.read_text("utf-8") for path in SRC.rglob("*.py") if path != TABLE]
    named = {name for text in texts for name in re.findall(r"(?<![A-Z_])WEFT_[A-Z_]+", text)}

    assert named - MARKS == NAMES


def test_every_row_has_a_name_of_its_own_a_meaning_and_a_page() -> None:
    rows = [*VARIABLES, *PROJECT]
    assert len({row.name for row in rows}) == len(rows)
    assert [row.name for row in rows if not row.meaning.endswith((".", ": for ever.")) or not row.page] == []


def test_a_variable_without_a_row_cannot_be_read() -> None:
    with pytest.raises(KeyError):
        variable("WEFT_SOMETHING")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_JWT_NAME", "")
    assert variable("WEFT_JWT_NAME") == "sub"
    monkeypatch.setenv("WEFT_JWT_NAME", "email")
    assert variable("WEFT_JWT_NAME") == "email"


def test_the_limits_of_the_table_are_those_of_the_code() -> None:
    defaults = {row.name.removeprefix("limits."): row.default for row in PROJECT if row.name.startswith("limits.")}
    assert defaults == {name: str(getattr(PatchLimits(), name)) for name in PatchLimits.__struct_fields__}


def test_the_limits_of_printed_lines_are_those_of_the_code() -> None:
    defaults = {row.name.removeprefix("logs."): row.default for row in PROJECT if row.name.startswith("logs.")}
    assert defaults == {"keep": "true"} | {
        name: str(getattr(LogLimits(), name)) for name in LogLimits.__struct_fields__
    }


def test_the_ages_of_the_table_are_those_of_the_policy() -> None:
    assert project_keys("retention") == (*AGES, "keep_last", *LEVELS)
    ages = {row.default for row in PROJECT if row.name in {f"retention.{age}" for age in AGES}}
    assert ages == {NEVER}


def test_a_misspelt_key_of_the_project_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.weft]\nulr = "sqlite:///shop.db"\n')

    with pytest.raises(UsageError, match="no setting 'ulr'") as refused:
        project_table(file)

    assert refused.value.hint.startswith("Did you mean url? It has url, redis, hot, ")


@pytest.mark.parametrize(("text", "message"), [("weft = 1", "not a table"), ("weft.url = 1", "url = 1 is not a text")])
def test_a_project_whose_settings_have_the_wrong_type_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(f"[tool]\n{text}\n")

    with pytest.raises(UsageError, match=message):
        project_text("url", file)


def test_a_project_without_settings_sets_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    assert project_table(file) == {}
    for text in ("[project]\n", "tool = 1"):
        file.write_text(text)
        assert project_table(file) == {}


@pytest.mark.parametrize("text", [b'[tool.weft\nurl = "sqlite:///shop.db"\n', b"\xff\xfe"])
def test_a_project_that_cannot_be_read_is_refused(tmp_path: Path, text: bytes) -> None:
    """Otherwise a slip of the pen would lead to another store, and to no retention."""
    file = tmp_path / "pyproject.toml"
    file.write_bytes(text)

    with pytest.raises(UsageError, match=r"pyproject\.toml cannot be read"):
        project_table(file)


def test_the_environment_names_the_store_before_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_URL", raising=False)
    assert store_url() == ""
    (tmp_path / "pyproject.toml").write_text('[tool.weft]\nurl = "sqlite:///shop.db"\n')
    assert store_url() == "sqlite:///shop.db"
    monkeypatch.setenv("WEFT_URL", "memory://")
    assert store_url() == "memory://"


def test_a_project_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    for url in ("memory://", "sqlite:///other.db"):
        file.write_text(f'[tool.weft]\nurl = "{url}"\n')
        assert project_text("url", file) == url
