"""Child runs: their rows are made with the event that starts them, whatever is in the way."""

from tests.contract.kit import FLOW, HERE, OTHER, RUN, append, commit, found, go, inbox, load, new, row, start
from weft.core.ids import Millis
from weft.ports.new_run import NewRun
from weft.ports.run_query import RunQuery
from weft.ports.store import Outcome, Store


def child(uid: str = "0123456789abcdef", **fields: object) -> NewRun:
    return new(uid, owner=None, parent=RUN, start=b'{"go":1}', **fields)


def test_a_child_is_made_with_its_start_mail(store: Store) -> None:
    start(store)

    commit(store, append(children=[child(id="kid")]))

    made = found(store, "kid")
    assert made is not None
    assert (made.parent, made.owner, made.epoch, made.mail, made.status) == (RUN, None, 0, 1, "pending")
    assert [piece.body for piece in load(store, made.uid).inbox] == [b'{"go":1}']


def test_a_child_waits_to_be_claimed(store: Store) -> None:
    start(store)

    commit(store, append(children=[child()]))

    waiting = go(store.directory.claimable([FLOW], dead=[], now=Millis(0), limit=10))
    assert [one.uid for one in waiting] == [child().uid]


def test_a_child_may_be_born_owned(store: Store) -> None:
    start(store)
    born = new("kid", parent=RUN, start=b"1")

    commit(store, append(children=[born]))

    assert (row(store, "kid").owner, row(store, "kid").epoch, inbox(store, "kid")) == (HERE, 1, ["start"])


def test_a_child_whose_id_is_taken_gets_another_one(store: Store) -> None:
    """The parent hears from the child that it could not be; a refusal would leave the parent waiting for ever."""
    start(store)
    start(store, OTHER, id="kid")

    assert commit(store, append(children=[child(id="kid")])) == [Outcome.ACCEPTED]

    made = found(store, "kid~01234567")
    assert made is not None
    assert (made.uid, inbox(store, made.uid)) == (child().uid, ["start"])
    assert found(store, "kid") == row(store, OTHER)


def test_even_the_other_id_may_be_taken(store: Store) -> None:
    start(store)
    start(store, "a", id="kid")
    start(store, "b", id="kid~01234567")

    commit(store, append(children=[child(id="kid")]))

    assert found(store, "kid~0123456789abcdef") is not None


def test_two_children_with_one_id_in_one_append(store: Store) -> None:
    start(store)

    commit(store, append(children=[child("aaaaaaaaaa", id="kid"), child("bbbbbbbbbb", id="kid")]))

    assert (found(store, "kid"), found(store, "kid~bbbbbbbb")) == (row(store, "aaaaaaaaaa"), row(store, "bbbbbbbbbb"))


def test_a_child_that_is_there_already_is_left_alone(store: Store) -> None:
    start(store)
    commit(store, append(children=[child(id="kid")]))

    assert commit(store, append(seq=1, children=[child(id="kid")])) == [Outcome.ACCEPTED]
    assert (row(store, child().uid).mail, found(store, "kid~01234567")) == (1, None)


def test_children_are_found_by_their_parent(store: Store) -> None:
    start(store)
    commit(store, append(children=[child("a"), child("b")]))

    page = go(store.directory.search(RunQuery(parent=RUN)))

    assert {one.uid for one in page.rows} == {"a", "b"}


def test_a_childs_attributes_are_found(store: Store) -> None:
    start(store)
    commit(store, append(children=[child("a", attributes={"x": 1})]))

    page = go(store.directory.search(RunQuery(where={"x": 1})))

    assert [one.uid for one in page.rows] == ["a"]
