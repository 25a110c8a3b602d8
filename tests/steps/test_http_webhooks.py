"""A webhook is taken only from who was asked, for what was asked, and soon after it was signed."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import NotAllowed, UsageError
from weft.steps.http.webhooks import Receipt, Webhooks, webhooks_here
from weft.tokens import WINDOW_S, is_signed, sign_body

KEY = "ab" * 32
NOW_S = 1_800_000_000
BODY = b'{"success": true, "outputs": {"total": 5}}'
RECEIPT = Receipt("order/1 ü", "u1", 7, "price", 3)
WEBHOOKS = Webhooks("https://weft.example/webhook", "a secret of enough bytes")


def test_a_signature_is_what_the_documentation_says() -> None:
    """Written by hand as a step server in another language would."""
    mac = hmac.new(KEY.encode(), f"{NOW_S}.".encode() + BODY, hashlib.sha256).hexdigest()

    assert sign_body(KEY, BODY, now_s=NOW_S) == f"t={NOW_S},v1={mac}"


@pytest.mark.parametrize("late_s", [0, 1, WINDOW_S, -WINDOW_S])
def test_what_was_signed_not_long_ago_is_taken(late_s: int) -> None:
    assert is_signed(KEY, BODY, sign_body(KEY, BODY, now_s=NOW_S), now_s=NOW_S + late_s)


@pytest.mark.parametrize("late_s", [WINDOW_S + 1, -WINDOW_S - 1, 10**9])
def test_what_was_signed_too_long_ago_or_ahead_is_refused(late_s: int) -> None:
    assert not is_signed(KEY, BODY, sign_body(KEY, BODY, now_s=NOW_S), now_s=NOW_S + late_s)


GOOD = sign_body(KEY, BODY, now_s=NOW_S)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "t=,v1=",
        "nonsense",
        GOOD.replace("v1", "v0"),
        GOOD.upper(),
        GOOD + " ",
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        f" {GOOD}",
        GOOD.replace(f"t={NOW_S}", f"t={NOW_S + 1}"),
        GOOD.replace(f"t={NOW_S}", "t=-1"),
        GOOD.replace(f"t={NOW_S}", f"t={'9' * 5000}"),
        GOOD.partition(",")[2],
        f"t={NOW_S},v1=" + "é" * 64,
        f"t={NOW_S},v1=" + "0" * 64,
        "t=١٢,v1=" + "0" * 64,
    ],
)
def test_a_signature_that_is_not_exactly_right_is_refused(signature: str) -> None:
    assert not is_signed(KEY, BODY, signature, now_s=NOW_S)


def test_a_changed_body_or_another_key_is_refused() -> None:
    assert not is_signed(KEY, BODY + b" ", GOOD, now_s=NOW_S)
    assert not is_signed(KEY.replace("a", "c"), BODY, GOOD, now_s=NOW_S)


def test_time_and_body_cannot_be_shifted_against_each_other() -> None:
    signature = sign_body(KEY, b"0.x", now_s=1)
    assert not is_signed(KEY, b"x", signature.replace("t=1,", "t=10,"), now_s=10)


def test_a_webhook_comes_back_to_what_it_is_for() -> None:
    token = WEBHOOKS.token(RECEIPT)
    signature = sign_body(WEBHOOKS.key(token), BODY, now_s=NOW_S)

    assert WEBHOOKS.url(token) == f"https://weft.example/webhook/{token}"
    assert token.replace("-", "").replace("_", "").isalnum()
    assert WEBHOOKS.open(token, BODY, signature, now_s=NOW_S) == RECEIPT


@pytest.mark.parametrize(
    "other",
    [
        Receipt("order-2", "u1", 7, "price", 3),
        Receipt("order/1 ü", "u1", 8, "price", 3),
        Receipt("order/1 ü", "u1", 7, "price", 4),
    ],
)
def test_who_was_asked_for_one_thing_cannot_answer_for_another(other: Receipt) -> None:
    signature = sign_body(WEBHOOKS.key(WEBHOOKS.token(RECEIPT)), BODY, now_s=NOW_S)

    with pytest.raises(NotAllowed):
        WEBHOOKS.open(WEBHOOKS.token(other), BODY, signature, now_s=NOW_S)


def test_an_engine_with_another_secret_takes_nothing() -> None:
    token = WEBHOOKS.token(RECEIPT)
    other = Webhooks("https://weft.example/webhook", "another secret, long enough")

    with pytest.raises(NotAllowed):
        other.open(token, BODY, sign_body(WEBHOOKS.key(token), BODY, now_s=NOW_S), now_s=NOW_S)


@given(token=st.text(max_size=60), signature=st.text(max_size=90), body=st.binary(max_size=50))
def test_whatever_arrives_is_refused_and_breaks_nothing(token: str, signature: str, body: bytes) -> None:
    with pytest.raises(NotAllowed):
        WEBHOOKS.open(token, body, signature, now_s=NOW_S)


@pytest.mark.parametrize("token", ["", "x", "====", "e30", "W10", "bm90IGpzb24", "é", "x" * 5000])
def test_a_token_that_names_nothing_is_refused_even_if_it_were_signed(token: str) -> None:
    signature = sign_body(WEBHOOKS.key(token), BODY, now_s=NOW_S)

    with pytest.raises(NotAllowed):
        WEBHOOKS.open(token, BODY, signature, now_s=NOW_S)


@pytest.mark.parametrize(
    ("base", "secret"), [("https://x", "short"), ("", "a secret of enough bytes"), ("ftp://x", "s" * 20)]
)
def test_webhooks_that_could_not_work_are_refused(base: str, secret: str) -> None:
    with pytest.raises(UsageError):
        Webhooks(base, secret)


def test_the_environment_says_where_webhooks_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_WEBHOOK_URL", raising=False)
    monkeypatch.delenv("WEFT_WEBHOOK_SECRET", raising=False)
    assert webhooks_here() is None

    monkeypatch.setenv("WEFT_WEBHOOK_URL", "https://weft.example/webhook")
    with pytest.raises(UsageError):
        webhooks_here()
    monkeypatch.setenv("WEFT_WEBHOOK_SECRET", "a secret of enough bytes")
    here = webhooks_here()
    assert here is not None
    assert here.key("t") == WEBHOOKS.key("t")
