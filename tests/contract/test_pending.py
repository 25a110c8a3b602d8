"""Runs that no host has taken up: a row with a name, and no event."""

from tests.contract.kit import HERE, RUN, THERE, append, claim, commit, create, finish, go, new, row
from weft.core.ids import Millis
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, Resolved, Store


def pending(store: Store, **fields: object) -> None:
    named = {"owner": None, "version": "", "style": "", "start": b'{"go":1}'}
    assert create(store, new(**(named | fields))) == [Outcome.ACCEPTED]


def claimable(store: Store, *workflows: tuple[str, str]) -> list[str]:
    rows = go(store.directory.claimable(workflows, dead=(), now=Millis(5_000), limit=10))
    return [found.uid for found in rows]


def test_a_run_that_nobody_owns_is_pending_and_an_owned_one_is_running(store: Store) -> None:
    create(store, new("a", owner=None), new("b"))

    assert (row(store, "a").status, row(store, "b").status) == ("pending", "running")


def test_a_run_without_a_version_is_claimed_by_whoever_offers_its_name(store: Store) -> None:
    pending(store)

    assert claimable(store, ("order", "1")) == []
    assert claimable(store, ("other", "")) == []
    assert claimable(store, ("order", "1"), ("order", "")) == [RUN]


def test_the_first_append_resolves_version_and_style(store: Store) -> None:
    pending(store)
    claim(store)
    first = append(taken=["start"], status="running", resolved=Resolved("7", "graph"))

    assert row(store).status == "pending"
    assert commit(store, first) == [Outcome.ACCEPTED]
    made = row(store)
    assert (made.version, made.style, made.status, made.seq) == ("7", "graph", "running", 1)


def test_a_refused_append_resolves_nothing(store: Store) -> None:
    pending(store)
    claim(store)
    claim(store, epoch=1, host=THERE)
    first = append(taken=["start"], status="running", resolved=Resolved("7", "graph"))

    assert commit(store, first) == [Outcome.STALE_EPOCH]
    made = row(store)
    assert (made.version, made.style, made.status, made.seq) == ("", "", "pending", 0)


def test_pending_runs_are_listed_and_counted(store: Store) -> None:
    pending(store)
    create(store, new("b"))

    page = go(store.directory.search(RunQuery(status="pending")))
    assert [found.uid for found in page.rows] == [RUN]
    assert go(store.directory.counts()) == {"pending": 1, "running": 1}


def test_a_pending_run_can_end_in_its_first_append(store: Store) -> None:
    pending(store)
    claim(store)
    finish(store, status="cancelled", taken=["start"], mail_taken=1)

    made = row(store)
    assert (made.status, made.owner) == ("cancelled", None)
    assert claim(store, epoch=1, host=HERE) == []
