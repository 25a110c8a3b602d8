"""URLs of Redis servers are understood, or refused with what to write."""

from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.stores.hot.address import redis_address


def test_a_url_has_all_that_is_needed_to_connect() -> None:
    address = redis_address("rediss://weft:p%40ss@cache.example:6380/2?ssl_ca_certs=/etc/ca.pem")
    assert (address.host, address.port, address.user, address.password) == ("cache.example", 6380, "weft", "p@ss")
    assert (address.database, address.tls, address.files) == (2, True, {"ssl_ca_certs": "/etc/ca.pem"})
    assert address.safe_url == "rediss://weft:***@cache.example:6380/2?ssl_ca_certs=/etc/ca.pem"


def test_what_is_left_out_has_a_default() -> None:
    address = redis_address("redis://cache")
    assert (address.host, address.port, address.user, address.password) == ("cache", 6379, "", "")
    assert (address.database, address.tls, address.ssl_context()) == (0, False, None)


def test_a_socket_is_named_by_its_path() -> None:
    address = redis_address("unix:///run/redis.sock?db=3")
    assert (address.path, address.database) == ("/run/redis.sock", 3)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("cache:6379", "is not the URL of a Redis server"),
        ("redis://", "is not the URL of a Redis server"),
        ("unix://", "is not the URL of a Redis server"),
        ("http://cache", "is not the URL of a Redis server"),
        ("redis://cache:port", "is not the URL of a Redis server: Port"),
        ("redis://cache/first", "'first' in redis://cache/first is not the number of a database"),
        ("redis://cache?retry=3", "has options that are not known: retry"),
        ("redis://cache?ssl_ca_certs=/ca.pem", "has options that are not known: ssl_ca_certs"),
    ],
)
def test_a_wrong_url_is_refused_with_what_to_write(url: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("?", r"\?")) as refused:
        redis_address(url)
    assert refused.value.hint


def test_a_refusal_does_not_show_the_password() -> None:
    with pytest.raises(UsageError) as refused:
        redis_address("redis://weft:secret@cache/first")
    assert "secret" not in str(refused.value)


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"certificates .* cannot be read"):
        redis_address(f"rediss://cache?ssl_ca_certs={tmp_path}/none.pem").ssl_context()
