"""Content outside the database: in a directory, or in S3. What is deleted is wanted by nobody, whoever dies when."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from tests import servers
from tests.contract.kit import HERE, append, new
from weft.core.ids import Millis
from weft.errors import Corrupt, NotFound, Unavailable, UsageError
from weft.stores import open_store
from weft.stores.blobs import BlobContent, indexed, open_content
from weft.stores.postgres import PostgresStore
from weft.stores.postgres.blob_index import PostgresIndex

DAY = 24 * 3600 * 1000
HELLO = hashlib.sha256(b"hello").hexdigest()

Scenario = Callable[[PostgresStore, BlobContent], Awaitable[None]]


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The URL of a bucket: the one in ``WEFT_TEST_S3``, or one of a server on this machine."""
    given = os.environ.get("WEFT_TEST_S3")
    if given:
        yield given
        return
    program = shutil.which("moto_server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no S3 server here: moto_server is not installed, and WEFT_TEST_S3 is not set")
    port = servers.free_port()
    server = subprocess.Popen([program, "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _make_bucket(f"http://127.0.0.1:{port}/weft-test", server)
        yield f"s3://weft-test/blobs?endpoint=http://127.0.0.1:{port}&region=us-east-1"
    finally:
        server.kill()
        server.wait()


def _make_bucket(address: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method="PUT"), timeout=120):
                return
        except URLError:
            time.sleep(0.05)
    raise RuntimeError("the S3 server did not start")


@pytest.fixture(params=["directory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a place."""
    if request.param == "directory":
        return f"file://{tmp_path}/blobs"
    if "WEFT_TEST_S3" not in os.environ:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
    found: str = request.getfixturevalue("s3")
    return f"{found.partition('?')[0]}/{tmp_path.name}?{found.partition('?')[2]}"


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[tuple[PostgresStore, BlobContent]]:
    url = servers.database("blobs")
    store = open_store(url, durability="fast", blobs=place)
    assert isinstance(store, PostgresStore)
    await store.open()
    await asyncio.to_thread(servers.empty, url)
    try:
        yield store, open_content(place)
    finally:
        await store.close()


def play(place: str, scenario: Scenario) -> None:
    async def run() -> None:
        async with opened(place) as (store, content):
            await scenario(store, content)

    asyncio.run(run())


async def sweep(store: PostgresStore, now: int, untouched_ms: int = DAY) -> int:
    return await store.blobs.sweep(now=Millis(now), untouched_ms=untouched_ms)


@pytest.mark.parametrize("data", [b"", b"hello", bytes(range(256)) * 300, b"y" * 3_000_000])
def test_content_comes_back_under_its_sha256(place: str, data: bytes) -> None:
    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        digest = await store.blobs.put(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert await store.blobs.put(data) == digest
        assert await store.blobs.get(digest) == await content.read(digest) == data

    play(place, scenario)


def test_what_was_never_put_is_not_found(place: str) -> None:
    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        with pytest.raises(NotFound):
            await store.blobs.get("0" * 64)
        assert await content.read("0" * 64) is None
        await content.delete("0" * 64)

    play(place, scenario)


def test_content_that_was_changed_is_noticed(place: str) -> None:
    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        await content.write(HELLO, b"hallo")
        with pytest.raises(Corrupt):
            await store.blobs.get(HELLO)

    play(place, scenario)


def test_what_nobody_needs_is_deleted_in_both_places(place: str) -> None:
    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        needed = await store.blobs.put(b"needed")
        await store.log.commit([append(create=new(), refs=[needed])], HERE)
        assert [await sweep(store, now) for now in (0, DAY - 1, DAY)] == [0, 0, 1]
        assert not await content.has(HELLO)
        assert await store.blobs.get(needed) == b"needed"
        with pytest.raises(NotFound):
            await store.blobs.get(HELLO)

    play(place, scenario)


def test_putting_again_keeps_it_alive(place: str) -> None:
    async def scenario(store: PostgresStore, _content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        await sweep(store, 0)
        await store.blobs.put(b"hello")
        assert await sweep(store, DAY) == 0
        assert await store.blobs.get(HELLO) == b"hello"

    play(place, scenario)


def test_content_that_is_missing_is_written_again(place: str) -> None:
    """The row was there, the bytes were not: whoever put it first died between."""

    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        await content.delete(HELLO)
        await store.blobs.put(b"hello")
        assert await store.blobs.get(HELLO) == b"hello"

    play(place, scenario)


def test_a_put_waits_for_a_deletion_that_is_under_way(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "POLL_SECONDS", 0.001)

    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        index = PostgresIndex(store.directory._pool)
        assert await index.mark_unused(now=Millis(0), untouched_ms=0, abandoned_seconds=60) == [HELLO]
        again = asyncio.create_task(store.blobs.put(b"hello"))
        for _ in range(20):
            await store.directory.counts()
        assert not again.done()

        await content.delete(HELLO)
        await index.remove(HELLO)

        assert await again == HELLO
        assert await store.blobs.get(HELLO) == b"hello"

    play(place, scenario)


@pytest.mark.parametrize("who", ["a sweep", "a put"])
def test_a_deletion_whose_sweeper_died_is_finished_by_others(
    place: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: PostgresStore, content: BlobContent) -> None:
        await store.blobs.put(b"hello")
        index = PostgresIndex(store.directory._pool)
        await index.mark_unused(now=Millis(0), untouched_ms=0, abandoned_seconds=60)
        monkeypatch.setattr(indexed, "ABANDONED_SECONDS", 0.0)
        if who == "a put":
            await store.blobs.put(b"hello")
            assert await store.blobs.get(HELLO) == b"hello"
        else:
            assert await sweep(store, 1) == 1
            assert not await content.has(HELLO)

    play(place, scenario)


def test_what_the_database_had_before_is_still_read(place: str) -> None:
    async def scenario(store: PostgresStore, _content: BlobContent) -> None:
        inside = PostgresStore(servers.database("blobs"), durability="fast")
        await inside.open()
        await inside.blobs.put(b"hello")
        await inside.close()
        assert await store.blobs.get(HELLO) == b"hello"

    play(place, scenario)


def test_a_directory_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def scenario(store: PostgresStore, _content: BlobContent) -> None:
        with pytest.raises(Unavailable, match="cannot be used"):
            await store.blobs.put(b"hello")

    play(f"file://{tmp_path}/file/blobs", scenario)


def test_a_directory_never_shows_half_a_file(tmp_path: Path) -> None:
    async def scenario(store: PostgresStore, _content: BlobContent) -> None:
        await asyncio.gather(*[store.blobs.put(b"hello") for _ in range(8)])
        assert [path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == [HELLO]

    play(f"file://{tmp_path}/blobs", scenario)


@pytest.mark.parametrize("url", ["", "blobs", "file://", "file://host/path", "s3://", "ftp://x/y", "s3://b?secret=1"])
def test_a_url_that_names_no_place_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_content(url)

    assert caught.value.hint


@pytest.mark.parametrize("url", ["memory://", "sqlite:///weft.db"])
def test_stores_that_keep_blobs_themselves_say_so(url: str) -> None:
    with pytest.raises(UsageError, match="keeps its own blobs"):
        open_store(url, blobs="file:///somewhere")


def test_an_s3_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: dict[str, Any] = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    content = open_content("s3://bucket?endpoint=http://127.0.0.1:1&region=us-east-1")

    with pytest.raises(Unavailable, match="s3://bucket"):
        asyncio.run(content.read("0" * 64))
