"""A real server in a process of its own, as a browser sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tests.servers import free_port

SHOP = Path(__file__).with_name("shop.py")
START_SECONDS_MAX = 120.0
WAIT_SECONDS_MAX = 60.0


class Served:
    """A program served by ``weft serve`` on a port of its own. It can be killed and started again on that port."""

    def __init__(self, folder: Path, *, program: Path = SHOP, store: str = "", **environment: str) -> None:
        self.folder = folder
        self.store = store or f"sqlite:///{folder / 'shop.db'}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program = program
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start_server(self) -> None:
        """Start, and wait until it answers."""
        environment = {**os.environ, **self._environment, "WEFT_URL": self.store}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log, env=environment, cwd=self.folder)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.log())
            time.sleep(0.02)

    def command(self) -> list[str]:
        """Return what starts the server."""
        return [str(Path(sys.executable).with_name("weft")), "serve", str(self._program), "--port", str(self.port)]

    def stop_server(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(WAIT_SECONDS_MAX)
            self._process = None

    def log(self) -> str:
        return (self.folder / "log").read_text()

    # --- the API ------------------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        """Send one request to the API and return its answer, or fail with the problem."""
        data = msgspec.json.encode(body) if body is not None else None
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method)
        request.add_header("content-type", "application/json")
        if key:
            request.add_header("authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=WAIT_SECONDS_MAX) as answer:
                raw = answer.read()
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{method} {path}: {refused.code} {refused.read().decode()}") from None
        return msgspec.json.decode(raw) if raw else None

    def start(self, workflow: str, id: str, **given: Any) -> str:
        """Start a run and return its id."""
        self.ask("POST", "/runs", {"workflow": workflow, "id": id, "input": given})
        return id

    def run(self, id: str) -> Any:
        return self.ask("GET", f"/runs/{quoted(id)}")

    def until(self, id: str, *statuses: str, seconds: float = WAIT_SECONDS_MAX) -> Any:
        """Wait until a run has one of these statuses."""
        deadline = time.monotonic() + seconds
        while (found := self.run(id))["status"] not in statuses:
            assert time.monotonic() < deadline, f"{id} is {found['status']}"
            time.sleep(0.02)
        return found

    def until_event(self, id: str, kind: str) -> int:
        """Wait until the log of a run has an event of this kind; return its number."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            events = self.ask("GET", f"/runs/{quoted(id)}/events?limit=200")["events"]
            for event in events:
                if event["kind"] == kind:
                    return int(event["seq"])
            assert time.monotonic() < deadline, f"{id} has no {kind}: {[event['kind'] for event in events]}"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def quoted(text: str) -> str:
    return quote(text, safe="")
