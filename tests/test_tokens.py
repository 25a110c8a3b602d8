"""A token says what it was made from, to whoever has the secret, until it expires."""

from base64 import urlsafe_b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.tokens import TOKEN_CHARS_MAX, ExpiredToken, InvalidToken, Signer, pack, unpack


class Claim(msgspec.Struct, frozen=True, array_like=True):
    name: str
    until_s: int


SIGNER = Signer(b"x" * 32, "link")
TOKEN = SIGNER.seal(Claim("ann", 1_000))


def test_claims_come_back_as_they_were() -> None:
    assert SIGNER.open(TOKEN, Claim, now_s=999) == Claim("ann", 1_000)
    assert unpack(pack(Claim("ü/?", 1)), Claim) == Claim("ü/?", 1)


def test_a_token_is_void_from_its_last_second_on() -> None:
    with pytest.raises(ExpiredToken):
        SIGNER.open(TOKEN, Claim, now_s=1_000)


@pytest.mark.parametrize("other", [Signer(b"y" * 32, "link"), Signer(b"x" * 32, "webhook")])
def test_another_secret_or_purpose_opens_nothing(other: Signer) -> None:
    with pytest.raises(InvalidToken):
        other.open(TOKEN, Claim, now_s=0)


DEEP = urlsafe_b64encode(b'["ann",1,%b%b]' % (b"[" * 1_500, b"]" * 1_500)).decode().rstrip("=")


@pytest.mark.parametrize("text", [DEEP, "", "e30", "W10", "bm90IGpzb24", "é", "A", "A" * (TOKEN_CHARS_MAX + 1)])
def test_text_that_nobody_packed_is_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        unpack(text, Claim)


@given(text=st.text(max_size=80))
def test_nothing_opens_by_chance(text: str) -> None:
    with pytest.raises(InvalidToken):
        SIGNER.open(text, Claim, now_s=0)
