"""A small OpenID provider in a process of its own: `python -m tests.server.provider_process` prints its address.

It has one person, ann, who is signed in as soon as she comes by. It checks what a real one checks: the client, its
redirect address, and that the code is redeemed once and with the right verifier.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT, AUDIENCE = "weft-ui", "weft"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CODES: dict[str, dict[str, str]] = {}
CLAIMS: dict[str, Any] = {"scope": "read start", "roles": ["ops"]}


class Provider(BaseHTTPRequestHandler):
    issuer = ""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/.well-known/openid-configuration":
            addresses = {
                f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token", "end_session")
            }
            self.answer(200, {"issuer": self.issuer, **addresses})
        elif url.path == "/keys":
            key = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
            self.answer(200, {"keys": [{**key, "kid": "k1", "alg": "RS256", "use": "sig"}]})
        elif url.path == "/authorization" and asked["client_id"] == CLIENT and asked["code_challenge_method"] == "S256":
            code = secrets.token_urlsafe(16)
            CODES[code] = asked
            back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer, "session_state": "x"})
            self.send_response(302)
            self.send_header("location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
        else:
            self.answer(400, {"error": "invalid_request"})

    def do_POST(self) -> None:
        form = {
            name: values[0]
            for name, values in parse_qs(self.rfile.read(int(self.headers["content-length"])).decode()).items()
        }
        asked = CODES.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
            self.answer(400, {"error": "invalid_grant"})
            return
        who = {"iss": self.issuer, "sub": "ann", "exp": int(time.time()) + 600}
        self.answer(
            200,
            {
                "token_type": "Bearer",
                "access_token": self.signed({**who, "aud": AUDIENCE, **CLAIMS}),
                "id_token": self.signed({**who, "aud": CLIENT, "nonce": asked["nonce"]}),
            },
        )

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, KEY, algorithm="RS256", headers={"kid": "k1"})

    def answer(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    Provider.issuer = f"http://127.0.0.1:{server.server_port}"
    print(Provider.issuer, flush=True)
    sys.stdin.close()
    server.serve_forever()
