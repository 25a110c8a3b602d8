"""The web UI as it is served: its page at every address of a screen, its files, and below any prefix."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

import weft
from tests.server.kit import API, Answer, Server, covers, serving
from tests.server.shop import shop
from weft.authoring.served_app import Served
from weft.server.api import Api
from weft.server.screen_routes import SCREENS
from weft.server.web.files import WebFiles, read_files

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
INDEX = '<!doctype html><base href="__BASE__"><meta name="weft-nonce" content="__NONCE__"><title>Weft</title>'
SCRIPT = b'document.title = "Weft";' * 50
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
ADDRESSES = [re.sub(r"{\w+}", "a%2Fb", path) for path in SCREENS]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> WebFiles:
    """A small web UI, stored as the build stores it."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(INDEX)
    (folder / "assets/app-1a2b3c.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (folder / "assets/app-1a2b3c.js.br").write_bytes(b"as brotli")
    (folder / "assets/face-4d5e6f.woff2").write_bytes(b"a font")
    (folder / "favicon.svg.gz").write_bytes(gzip.compress(b"<svg/>"))
    (folder / "favicon.svg.br").write_bytes(b"as brotli")
    return read_files(folder)


@pytest.fixture(scope="module")
def ui(files: WebFiles) -> Iterator[Server]:
    with serving(shop(), web=files) as running:
        yield running


# --- the page ----------------------------------------------------------------------------------------------------


@covers("home")
def test_a_browser_gets_the_page_and_a_program_a_text(ui: Server) -> None:
    page, text = ui.get("/", Accept=BROWSER), ui.get("/", Accept="*/*")

    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (text.status, text.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert b"openapi.json" in text.raw
    assert ui.get("/").raw == text.raw


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_address_of_a_screen_is_answered_with_the_page(ui: Server, address: str) -> None:
    page = ui.get(f"{address}?status=failed&unknown=%ff", Accept=BROWSER)

    assert (page.status, page.headers["cache-control"]) == (200, "no-store")
    assert b"<title>Weft</title>" in page.raw
    assert ui.get(address, Accept="application/json").code == "request.unknown_route"


@pytest.mark.parametrize("path", ["/nowhere", "/runs/a/b", "/assets", "/assets/none.js", "/assets/../index.html"])
def test_anything_else_stays_unknown(ui: Server, path: str) -> None:
    assert ui.get(path, Accept=BROWSER).code == "request.unknown_route"


def test_the_api_is_never_answered_with_the_page(ui: Server) -> None:
    assert ui.get(f"{API}/nowhere", Accept=BROWSER).code == "request.unknown_route"
    assert ui.get(f"{API}/runs/nobody", Accept=BROWSER).code == "run.not_found"
    assert ui.post("/runs", {}, Accept=BROWSER).status == 404


def test_the_policy_allows_nothing_from_elsewhere(ui: Server) -> None:
    page = ui.get("/runs", Accept=BROWSER)
    (nonce,) = re.findall(r'content="([^"]+)"', page.raw.decode())

    assert page.headers["content-security-policy"] == POLICY.format(nonce=nonce)
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cross-origin-opener-policy"] == "same-origin"
    assert nonce not in ui.get("/runs", Accept=BROWSER).raw.decode()


def test_without_a_built_ui_the_server_says_how_to_build_it() -> None:
    with serving(shop(), web=WebFiles()) as server:
        answer = server.get("/", Accept=BROWSER)
        assert (answer.status, b"make ui" in answer.raw) == (200, True)
        assert server.get("/runs", Accept=BROWSER).status == 404


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("*", "br"),
        ("*;q=0", None),
        ("identity", None),
        ("", None),
    ],
)
def test_a_file_is_sent_in_an_encoding_that_the_client_takes(ui: Server, accepted: str, encoding: str | None) -> None:
    answer = ui.get("/assets/app-1a2b3c.js", Accept_Encoding=accepted)

    assert (answer.status, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert (answer.headers.get("content-encoding"), answer.headers["vary"]) == (encoding, "accept-encoding")
    assert answer.raw == {"br": b"as brotli", "gzip": gzip.compress(SCRIPT, mtime=0), None: SCRIPT}[encoding]


def test_names_with_a_digest_are_kept_for_ever_and_others_are_asked_for_again(ui: Server) -> None:
    face, icon = ui.get("/assets/face-4d5e6f.woff2", Accept_Encoding="br"), ui.get("/favicon.svg")

    assert (face.raw, face.headers["content-type"]) == (b"a font", "font/woff2")
    assert face.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "content-encoding" not in face.headers
    assert (icon.raw, icon.headers["cache-control"]) == (b"<svg/>", "no-cache")


def test_only_the_names_that_the_browser_asks_for_are_files(ui: Server) -> None:
    for path in ("/assets/app-1a2b3c.js.br", "/assets/app-1a2b3c.js.gz", "/index.html", "/assets/%2e%2e/favicon.svg"):
        assert ui.get(path).status == 404, path


# --- prefixes ----------------------------------------------------------------------------------------------------


def test_at_the_root_all_addresses_lead_to_the_files(ui: Server) -> None:
    for address in ("/", "/runs", "/runs/a%2Fb", "/runs/", "/runs/a/diff/b"):
        page = ui.get(address, Accept=BROWSER)
        assert urljoin(f"{ui.url}{address}", base_in(page)) == f"{ui.url}/", address


def test_a_mounted_api_knows_its_prefix(files: WebFiles) -> None:
    app = weft.App("memory://")
    outer = FastAPI(lifespan=app.lifespan)
    outer.mount("/weft", Api(Served(app.registered), lambda: app.service, web=files))
    with listening(outer) as port:
        for address in ("/weft/", "/weft/runs", "/weft/runs/a%2Fb"):
            page = ask(port, address)
            assert (page.status, base_in(page)) == (200, "/weft/"), address
        assert ask(port, "/weft/assets/app-1a2b3c.js").status == 200
        assert ask(port, "/weft/nowhere").status == 404


def test_behind_a_proxy_that_strips_a_prefix_the_files_are_found(ui: Server) -> None:
    with stripping_proxy(ui.port, "/a/b") as port:
        for address in ("/a/b/", "/a/b/inbox", "/a/b/workflows/order/diff/1/2"):
            page = ask(port, address)
            base = urlsplit(urljoin(f"http://proxy{address}", base_in(page))).path
            assert base == "/a/b/", address
            assert ask(port, f"{base}assets/app-1a2b3c.js").status == 200
            assert ask(port, f"{base}api/v1/me").status == 200


def base_in(page: Answer) -> str:
    (base,) = re.findall(r'<base href="([^"]+)">', page.raw.decode())
    return str(base)


def ask(port: int, path: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Accept": BROWSER})
        answered = connection.getresponse()
        return Answer(answered.status, {k.lower(): v for k, v in answered.getheaders()}, answered.read())


@contextlib.contextmanager
def listening(app: ASGIApp) -> Iterator[int]:
    """Serve an application as its author would."""
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)
        bound.close()


@contextlib.contextmanager
def stripping_proxy(port: int, prefix: str) -> Iterator[int]:
    """A proxy that removes a prefix and tells nobody."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = ask(port, self.path.removeprefix(prefix))
            self.send_response(answer.status)
            self.send_header("content-length", str(len(answer.raw)))
            self.end_headers()
            self.wfile.write(answer.raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join(120)
        server.server_close()


def test_a_folder_without_a_page_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "app.js.gz").write_bytes(b"")

    assert read_files(tmp_path) == WebFiles()
