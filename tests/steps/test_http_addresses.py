"""Only public addresses may be called, however the others are spelled, unless somebody allowed them."""

from __future__ import annotations

import ipaddress

import pytest

from weft.errors import UsageError
from weft.steps.http.addresses import Allowed, is_disguised, is_public, parse_allowed, parse_ip_address

REFUSED = """
127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
100.127.255.255 192.0.0.8 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 192.88.99.1 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::8.8.8.8
64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1:: 2001:db8::1 2001:10::1 2002:7f00:1:: 2002:a00:1:: 3fff::1 5f00::1
fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1 4000::1
""".split()  # noqa: SIM905 - a table reads better without quotes
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"]


@pytest.mark.parametrize("text", REFUSED)
def test_a_special_address_is_not_public(text: str) -> None:
    address = parse_ip_address(text)

    assert address is not None
    assert not is_public(address)
    assert not Allowed().address(address)


@pytest.mark.parametrize("text", PUBLIC)
def test_an_ordinary_address_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "host",
    ["2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "0", "0X7F.0.0.1"],
)
def test_a_number_that_the_system_would_take_for_an_address_is_seen(host: str) -> None:
    assert is_disguised(host)


@pytest.mark.parametrize("host", ["shop.example", "127.0.0.1", "::1", "1e100.net", "0x.example", "x127.0.0.1"])
def test_a_name_or_a_plain_address_is_no_disguise(host: str) -> None:
    assert not is_disguised(host)


def test_what_is_allowed_is_exactly_what_was_written() -> None:
    allowed = parse_allowed(" 127.0.0.1, 10.0.0.0/8 ,fd00::/8, Billing.Internal. ")

    for text in ("127.0.0.1", "10.9.8.7", "fd00::7", "8.8.8.8"):
        assert allowed.address(ipaddress.ip_address(text)), text
    for text in ("127.0.0.2", "192.168.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1"):
        assert not allowed.address(ipaddress.ip_address(text)), text
    assert allowed.host("billing.internal")
    assert allowed.host("BILLING.internal.")
    assert not allowed.host("x.billing.internal")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "127.1", "localhost:8080", "http://x", "*", "a b", "-x", "10.0.0.0/33"])
def test_an_entry_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="WEFT_HTTP_ALLOW"):
        parse_allowed(f"127.0.0.1,{text}")


def test_an_empty_list_allows_nothing_more() -> None:
    assert parse_allowed("") == parse_allowed(" , ") == Allowed()
