"""What the command line says when the server, the URL or the key is not right: typed, and with a hint."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.remote.conftest import BothWays
from tests.remote.shop import shop
from tests.server.keyring import add_key
from tests.server.kit import serving
from tests.servers import free_port
from weft.authoring import remote


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are repeated at once."""
    monkeypatch.setattr(remote, "PAUSES_SECONDS", (0.0,))


@contextmanager
def answering(status: int, media: str, body: bytes, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A web server that is not Weft; its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"{'https' if context is not None else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_server(both: BothWays) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    said = both.say(url, "list")
    assert said.code == 1
    assert f"The server at {url} does not answer (connection refused)." in said.err
    assert "weft serve" in said.err
    assert "weft help store.no_server" in said.err


@pytest.mark.parametrize(("status", "media"), [(200, "text/html"), (404, "text/html"), (301, "text/html")])
def test_a_web_page_is_no_server_of_weft(both: BothWays, status: int, media: str) -> None:
    with answering(status, media, b"<html>hello</html>") as url:
        said = both.say(url, "list")
    assert said.code == 2
    assert "not from a Weft server" in said.err
    assert "weft help usage.no_weft_server" in said.err


def test_a_password_in_the_url_is_never_shown(both: BothWays) -> None:
    with answering(404, "text/html", b"<html>hello</html>") as url:
        for address in (url, f"http://127.0.0.1:{free_port()}", "http://127.0.0.1:port"):
            said = both.say(address.replace("://", "://ann:hunter2@"), "list")
            assert said.code > 0
            assert "hunter2" not in said.err + said.out


def test_a_server_that_fails(both: BothWays) -> None:
    with answering(502, "text/html", b"<html>bad gateway</html>") as url:
        said = both.say(url, "list")
    assert said.code == 1
    assert "answered with status 502" in said.err


@pytest.mark.parametrize(("number", "word"), [(99, "a newer"), (0, "an older")])
def test_a_server_of_another_version(both: BothWays, number: int, word: str) -> None:
    about = {"format": number, "version": "9.9", "now": "2026-01-01T00:00:00Z", "tenant": "", "kind": "sqlite"}
    with answering(200, "application/json", msgspec.json.encode(about)) as url:
        said = both.say(url, "list")
    assert said.code == 2
    assert f"runs {word} Weft (9.9)" in said.err
    assert "pip install weft==9.9" in said.err


def test_a_server_from_before_there_were_reads(both: BothWays) -> None:
    problem = {
        "type": "urn:weft:request.unknown_route",
        "title": "Not Found",
        "status": 404,
        "detail": "x",
        "code": "request.unknown_route",
    }
    with answering(404, "application/problem+json", msgspec.json.encode(problem)) as url:
        said = both.say(url, "list")
    assert said.code == 2
    assert "the URL is wrong, or it runs an older Weft" in said.err


def test_a_certificate_that_nobody_vouches_for(both: BothWays, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    with answering(200, "text/html", b"", context) as url:
        said = both.say(url, "list", "--key", "weft_secret")
    assert said.code == 2
    assert f"The certificate of {url} is not valid" in said.err
    assert "SSL_CERT_FILE" in said.err
    assert "weft_secret" not in said.err


def test_tls_where_there_is_none(both: BothWays) -> None:
    said = both.say(both.server.url.replace("http:", "https:"), "list")
    assert said.code in (1, 2)
    assert "https://127.0.0.1" in said.err
    assert "Traceback" not in said.err


def test_a_server_that_never_answers(both: BothWays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = both.say(f"http://127.0.0.1:{silent.getsockname()[1]}", "list")
    assert said.code == 1
    assert "does not answer" in said.err


def test_a_url_that_is_none(both: BothWays) -> None:
    said = both.say("https://[nowhere", "list")
    assert said.code == 2
    assert "is not a URL" in said.err


def self_signed(folder: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that no authority has signed, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin.replace(year=2046))
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return str(certificate), str(secret)


class TestKeys:
    """A server that is closed by keys."""

    @pytest.fixture
    def closed(self, both: BothWays, tmp_path: Path) -> Iterator[tuple[BothWays, str, str]]:
        with serving(shop(f"sqlite:///{tmp_path}/closed.db")) as server:
            key = add_key(server, "ann", "read")
            mine = add_key(server, "bob", "read", "start", "operate", tenant="acme")
            closed = BothWays(server, tmp_path, both._capsys)
            yield closed, key, mine

    def test_without_a_key(self, closed: tuple[BothWays, str, str]) -> None:
        said = closed[0].there("list")
        assert said.code == 1
        assert "This server requires a key" in said.err
        assert "--key KEY, WEFT_KEY" in said.err

    def test_with_a_wrong_key(self, closed: tuple[BothWays, str, str]) -> None:
        said = closed[0].there("list", "--key", "weft_wrong")
        assert said.code == 1
        assert "weft_wrong" not in said.err

    def test_with_a_key_that_may_only_read(self, closed: tuple[BothWays, str, str]) -> None:
        both, key, _ = closed
        assert both.there("list", "--key", key).code == 0
        said = both.there("keys", "create", "eve", "--scope", "admin", "--key", key)
        assert said.code == 1
        assert "scope admin" in said.err

    def test_the_key_comes_from_the_environment_or_a_file(
        self, closed: tuple[BothWays, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        both, key, _ = closed
        monkeypatch.setenv("WEFT_KEY", key)
        assert both.there("list").code == 0
        monkeypatch.delenv("WEFT_KEY")
        (tmp_path / "key").write_text(f"{key}\n")
        monkeypatch.setenv("WEFT_KEY_FILE", str(tmp_path / "key"))
        assert both.there("list").code == 0
        monkeypatch.setenv("WEFT_KEY_FILE", str(tmp_path / "nothing"))
        said = both.there("list")
        assert said.code == 2
        assert "WEFT_KEY_FILE names" in said.err

    def test_the_key_says_who_answers_a_question(self, closed: tuple[BothWays, str, str]) -> None:
        both, _, _ = closed
        decider = add_key(both.server, "dora", "read", "start", "decide", groups=["role:ops"])
        both.there("start", "patient", "--id", "asked", "--key", decider)
        both.there("send", "asked", "quote", "7", "--key", decider)
        both.until(lambda: "ask_opened" in both.there("events", "asked", "--json", "--key", decider).out)

        said = both.there("decide", "asked", "approve", "--by", "somebody else", "--key", decider)

        assert (said.code, said.out) == (0, "approved asked:ship\n")
        assert "--by is ignored" in said.err
        assert '"by":"dora"' in both.there("events", "asked", "--json", "--key", decider).out.replace(" ", "")

    def test_a_tenant_sees_its_own_runs_only(self, closed: tuple[BothWays, str, str]) -> None:
        both, _, mine = closed
        both.here("start", "hello", "name=a", "--id", "operators")
        empty = both.there("list", "--key", mine).out
        assert empty.startswith(f"No runs that you may see. Store: {both.server.url}."), empty
        said = both.there("start", "patient", "--id", "ours", "--key", mine)
        assert said.code == 0, said.err
        both.until(lambda: "waits for" in both.there("explain", "ours", "--key", mine).out)
        later = {"workflow": "patient", "id": "later", "delay": 3600}
        headers = {"Authorization": f"Bearer {mine}"}
        assert both.server.ask("POST", "/api/v1/runs", later, raw=None, **headers).status == 201
        assert "claimed" not in both.there("explain", "later", "--key", mine).out
        listed = both.there("list", "--key", mine).out
        assert "ours" in listed
        assert "operators" not in listed
        assert both.there("show", "operators", "--key", mine).code == 1
        assert both.there("show", "ours", "--key", mine).code == 0
        assert both.there("pause", "ours", "--key", mine).out == "ours is paused: weft resume ours\n"
        for words in (["hosts"], ["queue"], ["status"], ["steps"]):
            refused = both.there(*words, "--key", mine)
            assert refused.code == 1, (words, refused)
            assert "tenant" in refused.err
            assert "definitions." not in refused.err
