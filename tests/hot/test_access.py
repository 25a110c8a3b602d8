"""The server lets Weft in as the documentation says: a user with few rights, a password, TLS, a socket."""

import asyncio
import datetime as dt
import ipaddress
import re
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.hot.kit import LIMIT_S, in_loop
from tests.redis_server import RedisServer
from weft.errors import Unavailable
from weft.stores.hot.address import redis_address
from weft.stores.hot.redis_wal_server import RedisWalServer

PAGE = Path(__file__).parents[2] / "docs/redis.md"


def server_at(url: str) -> RedisWalServer:
    async def namespace() -> str:
        return "test"

    return RedisWalServer(redis_address(url), namespace, limit_s=LIMIT_S)


async def use_all_of(server: RedisWalServer) -> None:
    """Send every command that the hot path sends."""
    assert (await server.facts()).appendfsync == "everysec"
    assert await server.set_identity("one") == await server.identity() == "one"
    await server.begin(1)
    await server.append(1, 1, b"a", None)
    await server.append(1, 2, b"b", 1)
    await server.trim(1, 1)
    assert await server.seal(1)
    assert await server.read(1) == [(2, b"b")]
    await server.delete(1)


@in_loop
async def test_the_user_of_the_documentation_has_the_rights_that_are_needed(own_redis: RedisServer) -> None:
    found = re.search(r"^user (weft .*)$", PAGE.read_text(), re.MULTILINE)
    assert found is not None
    own_redis.command("ACL", "SETUSER", *found[1].split())
    server = server_at(f"redis://weft:secret@127.0.0.1:{own_redis.port}")
    await use_all_of(server)
    await server.close()


@in_loop
async def test_a_wrong_password_is_said_plainly_and_not_shown(own_redis: RedisServer) -> None:
    server = server_at(f"redis://weft:guess@127.0.0.1:{own_redis.port}")
    with pytest.raises(Unavailable, match="WRONGPASS") as refused:
        await server.identity()
    assert "guess" not in str(refused.value)
    await server.close()


@in_loop
async def test_a_password_without_a_user_and_another_database_are_used(own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "secret")
    server = server_at(f"redis://:secret@127.0.0.1:{own_redis.port}/3")
    await use_all_of(server)
    elsewhere = server_at(f"redis://:secret@127.0.0.1:{own_redis.port}/0")
    assert (await server.identity(), await elsewhere.identity()) == ("one", None)
    await elsewhere.close()
    await server.close()


@in_loop
async def test_a_socket_is_used(tmp_path: Path) -> None:
    real = RedisServer(aof="everysec", unixsocket=f"{tmp_path}/redis.sock").start()
    try:
        server = server_at(f"unix://{tmp_path}/redis.sock")
        await use_all_of(server)
        await server.close()
    finally:
        real.remove()


@in_loop
async def test_tls_is_used_and_the_certificate_is_checked(own_redis: RedisServer, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", own_redis.port)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer), return_exceptions=True)

    async with await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        trusting = server_at(f"rediss://127.0.0.1:{port}?ssl_ca_certs={tmp_path}/certificate.pem")
        await use_all_of(trusting)
        await trusting.close()
        doubting = server_at(f"rediss://127.0.0.1:{port}")
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            await doubting.identity()
        await doubting.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


def make_certificate(folder: Path) -> Path:
    """Write the key and the certificate of a server on this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "redis")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "certificate.pem").write_bytes(text)
    both = folder / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(text + secret)
    return both
