"""``weft check`` looks at agents: unknown models, and the three things that must not meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli import main

APP = """
import weft

app = weft.App()
app.model("fast", url="http://127.0.0.1:9/v1")


@app.step
async def read_mail() -> str:
    return ""


@app.step
async def post(text: str) -> str:
    return ""


@app.step
async def find_customer(name: str) -> str:
    return ""


app.agent("mailer", model="{model}", tools=[
    weft.tool(read_mail, touches=["untrusted"]),
    weft.tool(post, touches=["outside"]),
    weft.tool(find_customer, touches=[{touches}]),
])
"""


def check(tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, touches: str) -> tuple[int, str]:
    path = tmp_path / "mail_app.py"
    path.write_text(APP.replace("{model}", model).replace("{touches}", touches))
    capsys.readouterr()
    code = main(["check", str(path)])
    return code, capsys.readouterr().out


def test_private_data_strangers_and_the_outside_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, printed = check(tmp_path, capsys, "fast", '"private"')
    assert code == 0
    assert "reads private data and words of strangers" in printed


def test_two_of_the_three_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = check(tmp_path, capsys, "fast", "")
    assert (code, "warning" in printed) == (0, False)


def test_an_unknown_model_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = check(tmp_path, capsys, "fasst", "")
    assert code == 1
    assert "fasst" in printed


def test_each_agent_of_a_file_has_a_line_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two_app.py"
    begin, _, _ = APP.partition("app.agent")
    path.write_text(f'{begin}app.agent("one", model="fast")\napp.agent("two", model="fast")\n')

    assert main(["check", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in lines] == [["one", "sound"], ["two", "sound"]]
