"""Webhooks: URLs for answers that come later, and the proof that the right callee sent them.

The URL for an answer ends in a token that names the run, the step, the task and the attempt. Along with the URL, the
callee gets a key that belongs to this token alone. The key is derived from the engine's secret, which never leaves the
engine, so a callee can answer its own request and no other. The answer is a POST of JSON with one header:

    Weft-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256(key, "<unix seconds>." + body)>

A step with ``webhook: url`` is for callees that cannot sign: the URL ends in ``?key=<key>``, which is sufficient proof.
The token says whether that is allowed, so such a URL cannot be made for another step.
"""

from __future__ import annotations

import hmac

import msgspec

from weft.errors import NotAllowed, UsageError
from weft.settings import variable
from weft.tokens import SECRET_BYTES_MIN, TOKEN_CHARS_MAX, WINDOW_S, InvalidToken, Signer, is_signed, pack, unpack


class Receipt(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The claims of a token: what an answer is for."""

    run_id: str
    uid: str
    """The uid of the run, because an id may be used again."""
    task: int
    """The task's number in the log, the same in every attempt."""
    step: str
    attempt: int
    by_url: bool = False
    """The key in the URL is sufficient proof."""
    bare: bool = False
    """The answer has the outputs without an envelope."""


class Webhooks:
    """Makes the URLs for answers and checks the answers. All hosts of a store need the same secret."""

    def __init__(self, base_url: str, secret: str) -> None:
        if len(secret.encode()) < SECRET_BYTES_MIN:
            raise UsageError(
                f"The secret for webhooks has fewer than {SECRET_BYTES_MIN} bytes.",
                hint='Create one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )
        if not base_url.startswith(("https://", "http://")):
            raise UsageError(
                f"Webhooks cannot be received at {base_url!r}.",
                hint="Use the URL under which others reach this engine.",
            )
        self._base = base_url.rstrip("/")
        self._signer = Signer(secret.encode(), "webhook")

    def token(self, receipt: Receipt) -> str:
        """Return the token for the URL of an answer."""
        return pack(receipt)

    def url(self, token: str, *, with_key: bool = False) -> str:
        """Return the URL for an answer. With ``with_key``, it contains the key, for a callee that cannot sign."""
        return f"{self._base}/{token}?key={self.key(token)}" if with_key else f"{self._base}/{token}"

    def key(self, token: str) -> str:
        """Return the key that signs the answer for this token and for no other."""
        return self._signer.derive(token).hex()

    def open(self, token: str, body: bytes, signature: str, *, now_s: int, key: str = "") -> Receipt:
        """Check an answer and return its receipt. ``key`` is the key in its URL, which only some steps accept.

        Raises:
            NotAllowed: the token, key or signature is not valid, or the answer is too old. The error does not say
            which,
                because that would only help a forger.
        """
        if len(token) > TOKEN_CHARS_MAX or not token.isascii():
            raise _refused_webhook()
        own = self.key(token)
        if key:
            proven = hmac.compare_digest(own.encode(), key.encode())
        else:
            proven = is_signed(own, body, signature, now_s=now_s)
        if not proven:
            raise _refused_webhook()
        try:
            receipt = unpack(token, Receipt)
        except InvalidToken as error:
            raise _refused_webhook() from error
        if key and not receipt.by_url:
            raise _refused_webhook()
        return receipt


def webhooks_here() -> Webhooks | None:
    """Read WEFT_WEBHOOK_URL and WEFT_WEBHOOK_SECRET. Returns None if neither is set.

    Raises:
        UsageError: only one of them is set, or one is invalid.
    """
    base_url, secret = variable("WEFT_WEBHOOK_URL"), variable("WEFT_WEBHOOK_SECRET")
    return Webhooks(base_url, secret) if base_url or secret else None


def _refused_webhook() -> NotAllowed:
    return NotAllowed(
        "The webhook has no valid signature for this call, or its signature is too old.",
        hint=f"Sign the body with the key that came with the request, at most {WINDOW_S} s before sending it.",
    )
