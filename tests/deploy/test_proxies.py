"""The configurations of proxies in deploy/proxy, in front of a real server: answers, events and WebSockets pass."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from websockets.sync.client import connect

from tests import debian
from tests.deploy.files import DEPLOY
from tests.server.kit import API, Server, serving
from tests.server.shop import shop
from tests.servers import free_port

NGINX = """
worker_processes 1;
daemon off;
pid "{folder}/nginx.pid";
error_log stderr;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path "{folder}/body";
    proxy_temp_path "{folder}/proxied";
    fastcgi_temp_path "{folder}/fastcgi";
    uwsgi_temp_path "{folder}/uwsgi";
    scgi_temp_path "{folder}/scgi";
{site}
}}
"""


def nginx_command(folder: Path, upstream: int, port: int, prefix: str = "") -> list[str]:
    site = (DEPLOY / "proxy" / "nginx.conf").read_text()
    site = site.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace(
        "127.0.0.1:8420", f"127.0.0.1:{upstream}"
    )
    site = site.replace("server_name weft.example.com;", "server_name _;")
    if prefix:  # as docs/deployment.md says
        site = site.replace("location / {", f"location {prefix}/ {{").replace("http://weft;", "http://weft/;")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, site=site))
    return [str(debian.find(debian.NGINX)), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy_command(folder: Path, upstream: int, port: int) -> list[str]:
    site = (DEPLOY / "proxy" / "Caddyfile").read_text()
    site = site.replace("weft.example.com {", f"http://127.0.0.1:{port} {{").replace(
        "127.0.0.1:8420", f"127.0.0.1:{upstream}"
    )
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tgrace_period 1s\n}\n" + site)
    return [str(debian.find(debian.CADDY)), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


COMMANDS = {"nginx": nginx_command, "caddy": caddy_command}


@contextlib.contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """The proxy, until the end of the block."""
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environment) as proxy:
        try:
            while not _listens(port):
                assert proxy.poll() is None, (folder / "log").read_text()
                time.sleep(0.02)
            yield
        finally:
            proxy.terminate()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(shop()) as found:
        yield found


@pytest.fixture(params=list(COMMANDS))
def proxied(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Iterator[Server]:
    """The server, as it is seen through a proxy."""
    tmp_path.chmod(0o755)
    port = free_port()
    with running(COMMANDS[request.param](tmp_path, server.port, port), tmp_path, port):
        yield Server(port, server.app, server.api, server.loop)


def test_requests_pass_a_proxy_and_metrics_stay_inside(proxied: Server) -> None:
    run = proxied.start("order", order_id="o-1")

    assert proxied.get(f"{API}/runs/{run}").json["id"] == run
    assert proxied.get("/healthz").status == 200
    assert proxied.get("/metrics").status == 404


def test_live_events_arrive_while_the_run_is_open(proxied: Server) -> None:
    run = proxied.start("order", order_id="o-2")
    connection = http.client.HTTPConnection("127.0.0.1", proxied.port, timeout=120)
    with contextlib.closing(connection):
        connection.request("GET", f"{API}/runs/{run}/live")
        answer = connection.getresponse()
        while b"message_awaited" not in answer.readline():
            pass  # nothing is kept back until the run ends
    assert proxied.get(f"{API}/runs/{run}").json["status"] == "running"


def test_web_sockets_pass_a_proxy(proxied: Server) -> None:
    run = proxied.start("order", order_id="o-3")

    with connect(f"ws://127.0.0.1:{proxied.port}{API}/runs/{run}/live") as client:
        first = msgspec.json.decode(client.recv(timeout=120))

    assert "run_started" in str(first)


def test_a_proxy_may_add_a_prefix(server: Server, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    port = free_port()
    with running(nginx_command(tmp_path, server.port, port, "/a/b"), tmp_path, port):
        prefixed = Server(port, server.app, server.api, server.loop)
        assert prefixed.get("/a/b/healthz").status == 200
        assert prefixed.get("/healthz").status in {403, 404}, "of nginx itself, which has nothing there"
