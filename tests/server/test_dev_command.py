"""``weft dev`` as a process: a save is served, and a save that cannot be imported changes nothing but what is shown."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.server.kit import API
from weft.cli.file_watch import FileWatch

WEFT = str(Path(sys.executable).with_name("weft"))
APP = """
import weft

app = weft.App()

@app.workflow
async def {name}(ctx: weft.Context) -> str:
    return await ctx.receive("quote", str)
"""
SECONDS_MAX = 120
TIMES = iter(range(1, 1_000))


def save(file: Path, text: str) -> None:
    """Save a file. Its time changes even on a file system with coarse times."""
    file.write_text(text)
    moment = time.time() + next(TIMES)
    os.utime(file, (moment, moment))


class Developed:
    """A server under development, as its clients see it."""

    def __init__(self, running: subprocess.Popen[str], port: int) -> None:
        self.running = running
        self.port = port

    def get(self, path: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
        with contextlib.closing(connection):
            connection.request("GET", f"{API}/{path}")
            return msgspec.json.decode(connection.getresponse().read())

    def workflows(self) -> list[str]:
        return [one["name"] for one in self.get("workflows")["workflows"] if one["hosted"]]

    def dev_error(self) -> str:
        return str(self.get("me")["dev_error"])

    def until(self, what: Callable[[], Any], wanted: Any) -> Any:
        """Ask until the answer is the wanted one; a server that starts again may cut a request short."""
        end = time.monotonic() + SECONDS_MAX
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, msgspec.DecodeError):
                if (found := what()) == wanted:
                    return found
            assert time.monotonic() < end, f"never {wanted!r}"
            assert self.running.poll() is None
            time.sleep(0.05)


@contextlib.contextmanager
def developing(folder: Path) -> Iterator[Developed]:
    command = [WEFT, "dev", "app.py", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            said = running.stderr.readline()
            found = re.search(r":(\d+) on ", said)
            assert found is not None, said
            while "watching" not in running.stderr.readline():
                assert running.poll() is None
            yield Developed(running, int(found[1]))
        finally:
            running.kill()


@pytest.mark.proof
@pytest.mark.skipif(sys.platform == "win32", reason="weft dev needs POSIX")
def test_a_save_is_served_and_a_save_that_does_not_import_keeps_the_old_code(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(APP.format(name="first"))
    with developing(tmp_path) as dev:
        assert (dev.workflows(), dev.dev_error()) == (["first"], "")

        listener = http.client.HTTPConnection("127.0.0.1", dev.port, timeout=SECONDS_MAX)
        listener.request("GET", f"{API}/live")
        frames = listener.getresponse()
        assert b"ready" in frames.readline() + frames.readline()
        save(app, "import weft\napp = weft.App(")
        notice = b""
        while b"SyntaxError" not in notice:
            notice = frames.readline()
        listener.close()
        assert (dev.workflows(), "SyntaxError" in dev.dev_error()) == (["first"], True)

        save(app, APP.format(name="second"))
        dev.until(dev.workflows, ["second"])
        assert dev.dev_error() == ""

        dev.running.send_signal(signal.SIGINT)
        _, said = dev.running.communicate(timeout=SECONDS_MAX)
        assert dev.running.returncode == 0
    assert "the old code keeps running: app.py cannot be imported: SyntaxError" in said
    assert "app.py was saved: serving the new code" in said
    assert "Traceback" not in said


@pytest.mark.proof
@pytest.mark.skipif(sys.platform == "win32", reason="weft dev needs POSIX")
def test_the_code_that_was_imported_is_served_even_if_it_is_broken_before_it_starts(tmp_path: Path) -> None:
    app, begun, go_on = (tmp_path / name for name in ("app.py", "begun", "go-on"))
    app.write_text(APP.format(name="first"))
    slow = f"""
import pathlib, time
pathlib.Path({str(begun)!r}).touch()
while not pathlib.Path({str(go_on)!r}).exists():
    time.sleep(0.01)
"""
    with developing(tmp_path) as dev:
        save(app, APP.format(name="second") + slow)
        dev.until(begun.exists, wanted=True)
        save(app, "import weft\napp = weft.App(")
        go_on.touch()

        dev.until(dev.workflows, ["second"])
        dev.until(lambda: "SyntaxError" in dev.dev_error(), wanted=True)
        dev.running.send_signal(signal.SIGINT)
        _, said = dev.running.communicate(timeout=SECONDS_MAX)
    assert "cannot start" not in said


def test_an_app_that_cannot_be_imported_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("nonsense(")

    done = subprocess.run(
        [WEFT, "dev", "app.py", "--port", "0"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, "app.py cannot be imported" in done.stderr) == (2, True)


def test_saved_added_and_removed_sources_are_noticed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.py", "graphs/b.yaml", "notes.txt", ".venv/c.py", "env/pyvenv.cfg", "env/d.py", "gone.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    watch = FileWatch([tmp_path])
    assert watch.changed() == []

    for name in ("a.py", "graphs/b.yaml", "notes.txt", ".venv/c.py", "env/d.py", "new.py"):
        save(tmp_path / name, "2")
    (tmp_path / "gone.py").unlink()

    assert watch.changed() == [tmp_path / name for name in ("a.py", "gone.py", "graphs/b.yaml", "new.py")]
    assert watch.changed() == []
