"""kill -9 of hosts with a write-ahead log in a real Valkey before Postgres, at every boundary of its own.

Redis lives, so nothing may be lost: the next host takes over the log and goes on after the last acknowledged hop.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.redis_server import RedisServer

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
PAIRS = 10


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    server = RedisServer(aof="everysec").start()
    try:
        yield server
    finally:
        server.remove()


def sweep(redis: RedisServer, policy: str, *words: str, breaks: bool = False) -> dict[str, int]:
    url = servers.database("crash_hot")
    servers.empty(url)
    given = {
        "WEFT_CRASH_URL": url,
        "WEFT_CRASH_REDIS": redis.url,
        "WEFT_CRASH_HOT": policy,
        "WEFT_CRASH_BREAK": "1" if breaks else "",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.sweep", *words],
        cwd=ROOT,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("policy", ["end", "event"])
def test_killed_around_a_hop_or_a_drain_it_goes_on_and_loses_nothing(
    tmp_path: Path, redis: RedisServer, policy: str
) -> None:
    names = ("wal.before", "wal.after", "drain.before", "drain.after")

    found = sweep(redis, policy, str(tmp_path), "code", "named", *names)

    assert found["hops"] > 2
    assert found["kills"] >= len(names)


def test_killed_while_it_takes_over_the_next_one_takes_over_again(tmp_path: Path, redis: RedisServer) -> None:
    names = ("takeover.sealed", "takeover.read", "takeover.committed", "takeover.marked")

    assert sweep(redis, "end", str(tmp_path), "code", "named", *names)["kills"] == len(names)


def test_killed_while_it_changes_to_another_log_it_loses_nothing(tmp_path: Path, redis: RedisServer) -> None:
    names = ("wal.drained", "attach.before", "attach.after")

    assert sweep(redis, "end", str(tmp_path), "code", "named", *names, breaks=True)["kills"] >= len(names)


@pytest.mark.parametrize(("style", "policy"), [("code", "end"), ("graph", "event"), ("goal", "10s")])
def test_killed_anywhere_and_again_while_it_recovers_it_ends_right(
    tmp_path: Path, redis: RedisServer, style: str, policy: str
) -> None:
    assert sweep(redis, policy, str(tmp_path), style, "pairs", str(PAIRS), "1")["pairs"] == PAIRS
