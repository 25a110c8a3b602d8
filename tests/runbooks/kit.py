"""A site to break: a store in a folder, hosts as processes, and a terminal that types the commands of a runbook."""

from __future__ import annotations

import http.client
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.monitoring.files import RUNBOOKS, metrics
from weft.cli import main

WEFT = str(Path(sys.executable).with_name("weft"))
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READY = re.compile(r"http://127\.0\.0\.1:(\d+) on|performing steps")
HOST_COMMANDS = ("serve", "worker")


class Host:
    """A process that serves or works."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self.process = subprocess.Popen([WEFT, *words], cwd=folder, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said, found = "", None
        while found is None and (line := self.process.stderr.readline()):  # it may first log what it found
            said += line
            found = READY.search(line)
        assert found is not None, said
        self.port = int(found[1] or 0)

    def get(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        return metrics(self.get("/metrics")).get(name, 0.0)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        """Stop it in order; the rest of what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return str(said)


class Site:
    """A folder with a store, the hosts on it, and what is typed there."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.hosts: list[Host] = []

    def write(self, name: str, code: str) -> None:
        (self.folder / name).write_text(f"import weft\n\napp = weft.App()\n{code}")

    def serve(self, *words: str) -> Host:
        return self._start(["serve", *words])

    def _start(self, words: list[str]) -> Host:
        if "--port" in words:
            words[words.index("--port") + 1] = "0"
        elif words[0] == "serve":
            words = [*words, "--port", "0"]
        host = Host(self.folder, words)
        self.hosts.append(host)
        return host

    def close(self) -> None:
        for host in self.hosts:
            if host.process.poll() is None:
                host.kill()

    def type(self, line: str) -> str:
        """Type a command of a runbook, and return what it prints. A host that it starts is the last of `hosts`."""
        words = shlex.split(line)
        if words[0] == "curl":
            living = [host for host in self.hosts if host.port and host.process.poll() is None]
            return living[-1].get(words[-1].removeprefix("http://127.0.0.1:8420"))
        assert words[0] == "weft", line
        if words[1] in HOST_COMMANDS:
            self._start(words[1:])
            return ""
        self._capsys.readouterr()
        code = main(words[1:])
        said = self._capsys.readouterr()
        assert code == 0, f"{line}\n{said.out}{said.err}"
        return said.out + said.err

    def run(self, id: str) -> Any:
        return self._json("list", "--where", f"prefix={id}")["runs"][0]

    def status(self, id: str) -> str:
        return str(self.run(id)["status"])

    def _json(self, *words: str) -> Any:
        return msgspec.json.decode(self.type(shlex.join(["weft", *words, "--json"])))


class Page:
    """A runbook whose commands are typed at a site. `done` checks that none was left out."""

    def __init__(self, name: str, site: Site) -> None:
        text = (RUNBOOKS / f"{name}.md").read_text()
        parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
        self._site = site
        self.commands = {
            title: [line for block in FENCE.findall(part) for line in block.splitlines()]
            for title, part in zip(parts[::2], parts[1::2], strict=True)
        }
        self._left = {line for lines in self.commands.values() for line in lines}

    def look(self) -> str:
        """Type everything under Look, in order, and return what it prints."""
        return "\n".join(self._type(line) for line in self.commands["Look"])

    def mend(self, beginning: str = "", **names: str) -> str:
        """Type the commands under Mend that begin so. `names` replace words of the page, with - for _."""
        lines = [line for line in self.commands["Mend"] if line.startswith(f"weft {beginning}") or not beginning]
        assert lines, beginning
        return "\n".join(self._type(line, names) for line in lines)

    def _type(self, line: str, names: dict[str, str] | None = None) -> str:
        self._left.discard(line)
        for word, value in (names or {}).items():
            line = line.replace(word.replace("_", "-"), value)
        return self._site.type(line)

    def done(self) -> None:
        assert self._left == set()


def until(condition: Callable[[], object]) -> None:
    """Wait for something that other processes do; the time limit of the test ends it."""
    while not condition():
        time.sleep(0.05)
