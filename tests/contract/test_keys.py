"""Keys of outside commands: a duplicate is known, another body is refused, a rejection uses up nothing."""

from tests.contract.kit import NOBODY, OTHER, RUN, append, commit, finish, go, inbox, mail, row, send, start
from weft.core.ids import Seq
from weft.ports.store import KeyRow, Outcome, Store


def key(store: Store, name: str = "k") -> KeyRow | None:
    return go(store.directory.key(RUN, name))


def used(seq: int = 1, name: str = "k", digest: str = "d") -> KeyRow:
    return KeyRow(name, digest, Seq(seq))


def test_a_key_written_with_events_is_found(store: Store) -> None:
    start(store)

    assert commit(store, append(keys=[used()])) == [Outcome.ACCEPTED]
    assert key(store) == used()


def test_an_unused_key_and_an_unknown_run_have_none(store: Store) -> None:
    start(store)

    assert key(store) is None
    assert go(store.directory.key(NOBODY, "k")) is None


def test_a_key_is_used_once(store: Store) -> None:
    start(store)
    commit(store, append(keys=[used()]))

    assert commit(store, append(seq=1, keys=[used(2)])) == [Outcome.KEY_TAKEN]
    assert (row(store).seq, key(store)) == (1, used())


def test_a_taken_key_harms_no_other_run(store: Store) -> None:
    start(store)
    start(store, OTHER)
    commit(store, append(keys=[used()]))

    outcomes = commit(store, append(seq=1, keys=[used(2)]), append(OTHER, keys=[used()]))

    assert outcomes == [Outcome.KEY_TAKEN, Outcome.ACCEPTED]


def test_a_refused_append_uses_up_no_key(store: Store) -> None:
    start(store)

    commit(store, append(seq=7, keys=[used()]))

    assert key(store) is None


def test_a_key_that_came_by_mail_has_the_number_zero(store: Store) -> None:
    start(store)

    send(store, mail(key="k", digest="d"))

    assert key(store) == used(0)


def test_the_same_key_and_body_is_a_duplicate(store: Store) -> None:
    start(store)
    send(store, mail("a", key="k", digest="d"))

    assert send(store, mail("b", key="k", digest="d")) == ["duplicate"]
    assert inbox(store) == ["a"]


def test_the_same_key_with_another_body_is_refused(store: Store) -> None:
    start(store)
    send(store, mail("a", key="k", digest="d"))

    assert send(store, mail("b", key="k", digest="other")) == ["key_reused"]
    assert inbox(store) == ["a"]


def test_a_key_used_in_the_log_is_known_to_mail(store: Store) -> None:
    start(store)
    commit(store, append(keys=[used()]))

    assert send(store, mail("a", key="k", digest="d"), mail("b", key="k", digest="e")) == ["duplicate", "key_reused"]


def test_a_key_belongs_to_its_run(store: Store) -> None:
    start(store)
    start(store, OTHER)

    assert send(store, mail(key="k"), mail(to=OTHER, key="k")) == ["accepted", "accepted"]


def test_taking_the_mail_gives_its_key_a_number(store: Store) -> None:
    start(store)
    send(store, mail(key="k", digest="d"))

    assert commit(store, append(taken=["m1"], keys=[used()])) == [Outcome.ACCEPTED]
    assert key(store) == used()
    assert send(store, mail("again", key="k", digest="d")) == ["duplicate"]


def test_a_key_whose_mail_waits_cannot_be_used_by_another_command(store: Store) -> None:
    """Otherwise the same command would be in the log twice: once from the owner's service and once from the inbox."""
    start(store)
    send(store, mail(key="k", digest="d"))

    assert commit(store, append(keys=[used()])) == [Outcome.KEY_TAKEN]
    assert inbox(store) == ["m1"]


def test_mail_that_is_taken_without_using_its_key_leaves_the_key_free(store: Store) -> None:
    start(store)
    send(store, mail(key="k", digest="d"))

    commit(store, append(taken=["m1"]))

    assert key(store) is None
    assert send(store, mail("again", key="k", digest="other")) == ["accepted"]


def test_keys_are_kept_after_the_end_and_looked_up_before_the_state(store: Store) -> None:
    start(store)
    finish(store, keys=[used()])

    assert key(store) == used()
    assert send(store, mail("a", key="k", digest="d")) == ["duplicate"]
    assert send(store, mail("b", key="k", digest="e")) == ["key_reused"]
    assert send(store, mail("c", key="new")) == ["over"]
    assert key(store, "new") is None


def test_several_keys_go_with_one_append(store: Store) -> None:
    start(store)

    commit(store, append(count=2, keys=[used(1, "a"), used(2, "b")]))

    assert (key(store, "a"), key(store, "b")) == (used(1, "a"), used(2, "b"))


def test_one_taken_key_of_several_refuses_the_append(store: Store) -> None:
    start(store)
    commit(store, append(keys=[used(1, "a")]))

    assert commit(store, append(seq=1, keys=[used(2, "b"), used(2, "a")])) == [Outcome.KEY_TAKEN]
    assert key(store, "b") is None
