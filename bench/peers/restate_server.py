"""A Restate server and its service process on loopback, started for one workload and always stopped again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import ROOT

PACKAGES = ROOT / "build" / "bench-peers" / "restate-server" / "node_modules" / "@restatedev"
START_SECONDS_MAX = 60.0


@dataclass
class Restate:
    directory: Path
    ingress_port: int
    admin_port: int
    service_port: int
    server: subprocess.Popen[bytes]
    service: subprocess.Popen[bytes]

    @property
    def pids(self) -> tuple[int, int]:
        return self.server.pid, self.service.pid

    def url(self, handler: str) -> str:
        return f"http://127.0.0.1:{self.ingress_port}/Bench/{handler}"

    def open_count(self) -> int:
        """How many invocations have not ended yet."""
        query = "SELECT COUNT(1) AS open FROM sys_invocation WHERE status != 'completed'"
        answer = _post(f"http://127.0.0.1:{self.admin_port}/query", {"query": query})
        return int(json.loads(answer)["rows"][0]["open"])

    def kill_service(self) -> None:
        self.service.send_signal(signal.SIGKILL)
        self.service.wait()

    def start_service(self, **env: str) -> None:
        self.service = _start_service(self.directory, self.service_port, env)


def binary() -> Path | None:
    """The server's executable for this platform, or None before ``bench.peers.setup`` has run."""
    return next(PACKAGES.glob("restate-server-*/bin/restate-server"), None)


@contextmanager
def running(directory: Path, *, server_env: dict[str, str], service_env: dict[str, str]) -> Iterator[Restate]:
    ingress, admin, fabric, service_port = free_ports(4)
    ports = {
        "RESTATE_INGRESS__BIND_PORT": str(ingress),
        "RESTATE_ADMIN__BIND_PORT": str(admin),
        "RESTATE_BIND_PORT": str(fabric),
    }
    restate: Restate | None = None
    service = _start_service(directory, service_port, service_env)
    try:
        server = _start_server(directory, {**ports, **server_env})
        restate = Restate(directory, ingress, admin, service_port, server, service)
        _wait_until_registered(admin, service_port)
        yield restate
    finally:
        for process in (service,) if restate is None else (restate.server, restate.service):
            process.kill()
            process.wait()


def _start_server(directory: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    executable = binary()
    if executable is None:
        raise FileNotFoundError("the Restate server is not installed: python -m bench.peers.setup")
    command = [str(executable), "--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1"]
    command += ["--node-name", "bench", "--base-dir", str(directory / "restate")]
    settings = {"RESTATE_LOG_FILTER": "error", "RESTATE_ADVERTISED_HOST": "127.0.0.1", **env}
    with (directory / "server.log").open("wb") as log:
        return subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)


def _start_service(directory: Path, port: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hypercorn", "--bind", f"127.0.0.1:{port}", "--workers", "0"]
    command += ["--log-level", "ERROR", "bench.peers.restate_service:app"]
    with (directory / "service.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **env}, stdout=log, stderr=log)


def _wait_until_registered(admin_port: int, service_port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            _post(f"http://127.0.0.1:{admin_port}/deployments", {"uri": f"http://127.0.0.1:{service_port}"})
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _post(url: str, body: dict[str, Any]) -> bytes:
    headers = {"content-type": "application/json", "accept": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        read: bytes = answer.read()
        return read


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [opened.getsockname()[1] for opened in sockets]
    finally:
        for opened in sockets:
            opened.close()
