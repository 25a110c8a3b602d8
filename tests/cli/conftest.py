"""An empty folder with the app in it, the command line spoken to in this process, and a host in another one."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.cli.shop import APP, HOST
from weft.cli import main


class Spoken(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> object:
        assert self.code == 0, self.err
        return msgspec.json.decode(self.out)


Weft = Callable[..., Spoken]


@contextlib.contextmanager
def at_work(folder: Path) -> Iterator[Path]:
    """A folder with the app, where a user works; what is imported from it is forgotten afterwards."""
    (folder / "app.py").write_text(APP)
    path, modules = list(sys.path), set(sys.modules)
    with contextlib.chdir(folder):
        yield folder
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a user works in."""
    monkeypatch.delenv("WEFT_DEBUG", raising=False)
    with at_work(tmp_path) as folder:
        yield folder


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores made once and copied by the tests that begin with them."""
    scenes: dict[str, list[list[str]]] = {
        "over": [
            ["run", "app.py", "order", "order_id=o-1", "n=2", "--id", "order-1"],
            ["run", "app.py", "doomed", "order_id=o-2", "--id", "doomed-1"],
            ["run", "app.py", "family", "--id", "family-1"],
        ],
        # Any run of the app hosts all of them for its time.
        "waiting": [["start", "patient", "--id", "p-1"], ["run", "app.py", "hello", "name=a"]],
    }
    scenes["asked"] = [scenes["waiting"][0], ["send", "p-1", "quote", "42"], scenes["waiting"][1]]
    made = {}
    for name, commands in scenes.items():
        with at_work(tmp_path_factory.mktemp(name)) as place:
            for words in commands:
                main(words)
        made[name] = place / "weft.db"
    return made


@pytest.fixture
def over(weft: Weft, folder: Path, stored: dict[str, Path]) -> Weft:
    """Runs that are over, oldest first: order-1 completed, doomed-1 failed, family-1 had a child."""
    shutil.copy(stored["over"], folder)
    return weft


@pytest.fixture
def waiting(weft: Weft, folder: Path, stored: dict[str, Path]) -> Weft:
    """A run p-1 that waits for a message, and no process that hosts it."""
    shutil.copy(stored["waiting"], folder)
    return weft


@pytest.fixture
def asked(weft: Weft, folder: Path, stored: dict[str, Path]) -> Weft:
    """A run p-1 that waits for an answer, and no process that hosts it."""
    shutil.copy(stored["asked"], folder)
    return weft


@pytest.fixture
def weft(folder: Path, capsys: pytest.CaptureFixture[str]) -> Weft:
    """``weft(...)`` as if it were typed in that folder."""

    def speak(*words: str) -> Spoken:
        capsys.readouterr()
        code = main(words)
        said = capsys.readouterr()
        return Spoken(code, said.out, said.err)

    return speak


@contextlib.contextmanager
def hosting(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that hosts the app until its input is closed."""
    (folder / "host.py").write_text(HOST)
    with subprocess.Popen(
        [sys.executable, "host.py"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdin is not None
        assert host.stdout.readline() == "ready\n"
        try:
            yield host
            host.stdin.close()
            host.wait(200)
        finally:
            host.kill()


@pytest.fixture(scope="session")
def executable() -> str:
    """The command as it is installed."""
    return str(Path(sys.executable).with_name("weft"))
