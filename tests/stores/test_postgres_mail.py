"""Many senders in several processes, and an owner that takes their mail: none skipped, none twice, in order."""

import asyncio
import random

from tests import servers
from tests.contract.kit import HERE, RUN, append, event, mail, new
from weft.core.ids import RunUid
from weft.ports.store import Outcome, Sent
from weft.stores.postgres import PostgresStore

SENDERS = 32
PIECES = 25


async def _send(stores: list[PostgresStore], sender: int, accepted: set[str]) -> None:
    """One piece after the other, some twice, from whichever process."""
    dice = random.Random(sender)
    for number in range(PIECES):
        name = f"{sender}/{number:03}"
        for store in dice.sample(stores, dice.choice([1, 1, 2])):
            (sent,) = await store.log.send([mail(name)])
            assert sent in {Sent.ACCEPTED, Sent.DUPLICATE}
        accepted.add(name)


async def _take(store: PostgresStore, senders: asyncio.Future[list[None]]) -> list[str]:
    """Take what there is, again and again, and end the run when nothing can come any more."""
    taken: list[str] = []
    seq = 0
    while True:
        over = senders.done()
        names = [piece.id for piece in await store.log.inbox(RunUid(RUN))]
        change = append(
            seq=seq,
            events=[event(seq + 1)],
            taken=names,
            status="completed" if over else None,
            mail_taken=len(taken) + len(names),
        )
        (outcome,) = await store.log.commit([change], HERE)
        if outcome is Outcome.MAIL_WAITING:
            continue
        assert outcome is Outcome.ACCEPTED
        taken += names
        seq += 1
        if over:
            return taken


def test_no_mail_is_skipped_or_taken_twice_or_out_of_order() -> None:
    async def scenario() -> None:
        url = servers.database("mail")
        stores = [PostgresStore(url, durability="fast") for _ in range(3)]
        for store in stores:
            await store.open()
        await asyncio.to_thread(servers.empty, url)
        await stores[0].log.commit([append(count=0, create=new())], HERE)
        accepted: set[str] = set()
        senders = asyncio.gather(*[_send(stores, sender, accepted) for sender in range(SENDERS)])

        taken = await _take(stores[0], senders)

        assert len(taken) == len(accepted) == SENDERS * PIECES
        assert set(taken) == accepted
        for sender in range(SENDERS):
            mine = [name for name in taken if name.startswith(f"{sender}/")]
            assert mine == sorted(mine)
        for store in stores:
            await store.close()

    asyncio.run(scenario())
