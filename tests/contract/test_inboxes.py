"""Mail between processes: sent by a run's id, and read together with whatever else there is to do."""

import asyncio

import pytest

from tests.contract.kit import FLOW, HERE, RUN, THERE, create, finish, go, inbox, mail, new, rest, send, start, waiting
from weft.core.ids import HostId, Millis, RunId, RunUid
from weft.ports.store import Addressed, News, Sent, Store


def send_to(store: Store, id: str = f"id of {RUN}", name: str = "m1", **fields: object) -> Addressed:
    return go(store.inboxes.send_to(RunId(id), mail(name, to="", **fields)))


def news(store: Store, *, dead: tuple[HostId, ...] = (), now: int = 0) -> News:
    """Ask until something is said; a store may say it whenever it likes."""

    async def ask() -> News:
        while (found := await store.inboxes.news(HERE, [FLOW], dead=dead, now=Millis(now), limit=10)) is None:
            await asyncio.sleep(0.01)
        return found

    return go(ask())


def test_mail_reaches_the_run_with_this_id_and_tells_its_row(store: Store) -> None:
    start(store)

    done = send_to(store)

    assert done.row is not None
    assert (done.row.uid, done.row.owner, done.sent) == (RUN, HERE, Sent.ACCEPTED)
    assert inbox(store) == ["m1"]
    assert waiting(store) == {RUN: ["m1"]}


def test_the_judgement_is_that_of_any_other_mail(store: Store) -> None:
    start(store)

    judged = [
        send_to(store, name="m1", key="k", digest="d").sent,
        send_to(store, name="m2", key="k", digest="d").sent,
        send_to(store, name="m3", key="k", digest="other").sent,
        send_to(store, name="m1").sent,
    ]

    assert judged == [Sent.ACCEPTED, Sent.DUPLICATE, Sent.KEY_REUSED, Sent.DUPLICATE]
    assert inbox(store) == ["m1"]


def test_nothing_is_sent_to_a_run_that_no_host_owns_or_can_read(store: Store) -> None:
    start(store, "resting")
    rest(store, "resting")
    create(store, new("pending", owner=None, start=b"1"))
    start(store, "over")
    finish(store, "over")
    start(store, "torn")
    go(store.log.mark_fault(RunUid("torn"), "its log is torn"))

    for uid in ("resting", "pending", "over", "torn"):
        done = send_to(store, f"id of {uid}", "late")
        assert done.row is not None
        assert (done.row.uid, done.sent) == (uid, None)
        assert "late" not in inbox(store, uid)


def test_nothing_is_sent_to_a_run_that_is_not_there(store: Store) -> None:
    assert send_to(store, "nobody") == Addressed(None, None)


def test_news_have_the_inboxes_of_a_host_and_nothing_else_if_there_is_nothing(store: Store, peer: Store) -> None:
    start(store)
    start(store, "other")
    send(peer, mail("m1"), mail("m2"))

    found = news(store)

    assert {uid: [one.id for one in mail] for uid, mail in found.inboxes.items()} == {RUN: ["m1", "m2"]}  # type: ignore[union-attr]
    assert (found.claimable, found.wake_at) == (False, None)


@pytest.mark.parametrize("how", ["created", "released with mail", "due"])
def test_news_say_that_there_are_runs_to_claim(store: Store, peer: Store, how: str) -> None:
    start(store)
    if how == "created":
        create(peer, new("born", owner=None, start=b"1"))
    else:
        rest(store, wake_at=Millis(5_000) if how == "due" else None)
        if how != "due":
            send(peer, mail())

    assert news(store, now=5_000).claimable


def test_news_say_when_the_next_run_is_due(store: Store) -> None:
    start(store)
    rest(store, wake_at=Millis(5_000))

    found = news(store, now=4_999)

    assert (found.claimable, found.wake_at) == (False, 5_000)


def test_mail_for_a_run_of_a_dead_host_makes_it_claimable(store: Store) -> None:
    start(store)
    send(store, mail())
    go(store.log.claim([RUN], THERE, expected={RUN: go(store.directory.row(RUN)).epoch}))  # type: ignore[union-attr]

    found = news(store, dead=(THERE,))

    assert (dict(found.inboxes), found.claimable) == ({}, True)
