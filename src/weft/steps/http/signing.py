"""Webhooks: where an answer that comes later is sent, and the proof that it comes from who was asked.

The address of an answer ends in a token that names the run, the step, the call and the attempt. Beside it the callee
is given a key that belongs to this token alone: it is derived from the engine's secret, which never leaves the engine,
so a callee can answer for what it was asked and for nothing else. It answers with a POST of JSON and one header:

    Weft-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256(key, "<unix seconds>." + body)>

A step that says `webhook: url` is for callees that cannot sign: its address ends in ``?key=<key>``, which is proof
enough. The token says whether that is allowed, so nobody can choose it for another step.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re

import msgspec

from weft.errors import NotAllowed, UsageError

SIGNATURE_HEADER = "Weft-Signature"
WINDOW_S = 300
"""How old a signature may be, or how far ahead a clock: what was overheard is worthless after that."""
SECRET_BYTES_MIN = 16
TOKEN_CHARS_MAX = 4_096

_SIGNATURE = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


class Receipt(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What an answer is for."""

    run_id: str
    uid: str
    """The run itself: an id may be used again."""
    task: int
    """The task's number in the log, the same in every attempt."""
    step: str
    attempt: int
    by_url: bool = False
    """The key in the address is proof enough."""
    bare: bool = False
    """The answer is the outputs, never an envelope."""


def sign(key: str, body: bytes, *, now_s: int) -> str:
    """The value of the header that proves that this body was sent now by who has the key."""
    return f"t={now_s},v1={_mac(key, body, now_s)}"


def verify(key: str, body: bytes, signature: str, *, now_s: int) -> None:
    """Let pass what was signed with the key not long ago.

    Raises:
        NotAllowed: it was not. What was wrong is not told: only who forges one would learn from it.
    """
    found = _SIGNATURE.fullmatch(signature)
    signed_s = int(found[1]) if found else 0
    mac = found[2] if found else ""
    # Compared in constant time, and before the time is looked at, so that how long a refusal takes says nothing.
    genuine = hmac.compare_digest(_mac(key, body, signed_s), mac)
    if not genuine or abs(now_s - signed_s) > WINDOW_S:
        raise _refused()


class Webhooks:
    """Makes and opens the addresses of answers. Every host that shares a store needs the same secret."""

    def __init__(self, base_url: str, secret: str) -> None:
        if len(secret.encode()) < SECRET_BYTES_MIN:
            raise UsageError(
                f"The secret for webhooks has less than {SECRET_BYTES_MIN} bytes.",
                hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )
        if not base_url.startswith(("https://", "http://")):
            raise UsageError(
                f"Webhooks cannot be received at {base_url!r}.",
                hint="The address under which others reach this engine.",
            )
        self._base = base_url.rstrip("/")
        self._secret = secret.encode()

    def token(self, receipt: Receipt) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(receipt)).decode().rstrip("=")

    def url(self, token: str, *, with_key: bool = False) -> str:
        return f"{self._base}/{token}?key={self.key(token)}" if with_key else f"{self._base}/{token}"

    def key(self, token: str) -> str:
        """The key that signs the answer for this token, and no other."""
        return hmac.new(self._secret, b"weft webhook 1\0" + token.encode(), hashlib.sha256).hexdigest()

    def open(self, token: str, body: bytes, signature: str, *, now_s: int, key: str = "") -> Receipt:
        """What a webhook that arrived is for. ``key``: the one in its address; only some steps accept it.

        Raises:
            NotAllowed: its token, key or signature was not made by us, or it is too old.
        """
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():
            raise _refused()
        own = self.key(token)
        if not key:
            verify(own, body, signature, now_s=now_s)
        elif not hmac.compare_digest(own.encode(), key.encode()):
            raise _refused()
        try:
            padded = token + "=" * (-len(token) % 4)
            receipt = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Receipt)
        except (ValueError, msgspec.DecodeError) as error:
            raise _refused() from error
        if key and not receipt.by_url:
            raise _refused()
        return receipt


def webhooks_here() -> Webhooks | None:
    """What the environment of this process says about webhooks: WEFT_WEBHOOK_URL and WEFT_WEBHOOK_SECRET.

    Raises:
        UsageError: only one of them is there, or one is no good.
    """
    base_url, secret = os.environ.get("WEFT_WEBHOOK_URL", ""), os.environ.get("WEFT_WEBHOOK_SECRET", "")
    return Webhooks(base_url, secret) if base_url or secret else None


def _mac(key: str, body: bytes, signed_s: int) -> str:
    return hmac.new(key.encode(), b"%d.%b" % (signed_s, body), hashlib.sha256).hexdigest()


def _refused() -> NotAllowed:
    return NotAllowed(
        "The webhook is not signed for this call, or too long ago.",
        hint=f"Sign the body with the key that came with the request, at most {WINDOW_S} s before sending it.",
    )
