"""Programs for other processes: what the tests of several processes start, watch and kill.

Run as ``python -m tests.stores.children WHAT PATH …``; each writes one line per thing that it has done.
"""

import asyncio
import resource
import sys

from tests.contract.kit import append, new
from weft.core.ids import HostId
from weft.errors import Full
from weft.ports.store import Outcome, Store
from weft.stores import open_store


def say(*words: object) -> None:
    print(*words, flush=True)


async def commit_for_ever(store: Store, uid: str) -> None:
    """Append to one run without end, and say each number once it is durable."""
    host = HostId(f"host of {uid}")
    assert await store.log.commit([append(uid, count=0, create=new(uid, owner=host))], host) == [Outcome.ACCEPTED]
    seq = 0
    while True:
        # Every third batch has two runs, so that both ways into the file are killed.
        batch = [append(uid, seq=seq, count=2)]
        if seq % 3 == 0:
            other = f"{uid} {seq}"
            batch.append(append(other, create=new(other, owner=host)))
        outcomes = await store.log.commit(batch, host)
        assert set(outcomes) == {Outcome.ACCEPTED}, outcomes
        seq += 2
        say(seq)


async def commit_some(store: Store, uid: str, count: str) -> None:
    """Append so many times, against whoever else writes."""
    host = HostId(f"host of {uid}")
    assert await store.log.commit([append(uid, count=0, create=new(uid, owner=host))], host) == [Outcome.ACCEPTED]
    say("ready")
    sys.stdin.readline()
    for seq in range(int(count)):
        assert await store.log.commit([append(uid, seq=seq)], host) == [Outcome.ACCEPTED]
    say("done")


async def host_a_run(store: Store, host: str) -> None:
    """Join, own a run, and wait to be killed."""
    await store.hosts.join(HostId(host), lease_ms=60_000)
    await store.log.commit([append(f"run of {host}", create=new(f"run of {host}", owner=host))], HostId(host))
    say("ready")
    sys.stdin.readline()


async def fill_the_disk(store: Store, bytes_max: str) -> None:
    """Write until there is no room, say so, make room, and go on."""
    host = HostId("host")
    uid = "run"
    await store.log.commit([append(uid, count=0, create=new(uid, owner=host))], host)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(bytes_max), resource.RLIM_INFINITY))
    seq = 0
    try:
        while True:
            await store.log.commit([append(uid, seq=seq, count=20)], host)
            seq += 20
    except Full as error:
        say("full", seq, type(error).__name__, bool(error.hint))
    for _ in range(3):
        try:
            await store.log.commit([append(uid, seq=seq, count=20)], host)
        except Full:
            say("still full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    loaded = await store.log.load(new(uid).uid, fold=1)
    assert loaded is not None
    say("kept", loaded.row.seq, len(loaded.events))
    say(*await store.log.commit([append(uid, seq=seq, count=20)], host))


PROGRAMS = {one.__name__: one for one in (commit_for_ever, commit_some, host_a_run, fill_the_disk)}


async def main(program: str, path: str, *arguments: str) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await PROGRAMS[program](store, *arguments)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
