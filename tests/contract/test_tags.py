"""Tags: a change is made from the revision that its author saw, and a move cuts what came after it."""

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.ports.store import Store
from weft.ports.tags import Tag, TagKey, TagMove

KEY = TagKey("", "order", "live")


def tag(version: str, revision: int = 1, *, cursor: int = 1, moves: int = 1, key: TagKey = KEY) -> Tag:
    return Tag(
        key=key,
        version=version,
        cursor=cursor,
        moves=moves,
        revision=revision,
        by="ann",
        at=Millis(7 + revision),
        reason=f"r{revision}",
    )


def move(number: int, before: str, after: str, revision: int | None = None) -> TagMove:
    revision = number if revision is None else revision
    return TagMove(number=number, before=before, after=after, by="ann", at=Millis(7 + revision), reason=f"r{revision}")


def three_moves(store: Store) -> None:
    assert go(store.tags.write(tag("a"), move(1, "", "a")))
    assert go(store.tags.write(tag("b", 2, cursor=2, moves=2), move(2, "a", "b")))
    assert go(store.tags.write(tag("c", 3, cursor=3, moves=3), move(3, "b", "c")))


def test_a_tag_is_kept_with_its_moves(store: Store, peer: Store) -> None:
    assert go(store.tags.get(KEY)) is None
    assert list(go(store.tags.moves(KEY))) == []

    three_moves(store)

    assert go(peer.tags.get(KEY)) == tag("c", 3, cursor=3, moves=3)
    assert list(go(peer.tags.moves(KEY))) == [move(3, "b", "c"), move(2, "a", "b"), move(1, "", "a")]
    assert list(go(peer.tags.moves(KEY, upto=2, limit=1))) == [move(2, "a", "b")]
    assert list(go(peer.tags.moves(KEY, upto=0))) == []


def test_a_change_from_another_revision_changes_nothing(store: Store, peer: Store) -> None:
    three_moves(store)
    before = go(store.tags.get(KEY)), list(go(store.tags.moves(KEY)))

    for revision in (1, 2, 3, 5):
        assert not go(peer.tags.write(tag("x", revision, cursor=2, moves=2), move(2, "a", "x")))
        assert not go(peer.tags.write(tag("x", revision, cursor=2, moves=3)))

    assert (go(store.tags.get(KEY)), list(go(store.tags.moves(KEY)))) == before


def test_a_tag_is_made_by_its_first_revision_only(store: Store) -> None:
    assert not go(store.tags.write(tag("a", 2), move(1, "", "a")))
    assert go(store.tags.get(KEY)) is None
    assert list(go(store.tags.moves(KEY))) == []


def test_the_cursor_moves_without_a_move(store: Store) -> None:
    three_moves(store)

    assert go(store.tags.write(tag("b", 4, cursor=2, moves=3)))

    assert go(store.tags.get(KEY)) == tag("b", 4, cursor=2, moves=3)
    assert len(go(store.tags.moves(KEY))) == 3


def test_a_move_cuts_the_moves_after_it(store: Store, peer: Store) -> None:
    three_moves(store)
    assert go(store.tags.write(tag("a", 4, cursor=1, moves=3)))

    assert go(store.tags.write(tag("d", 5, cursor=2, moves=2), move(2, "a", "d", revision=5)))

    assert list(go(peer.tags.moves(KEY))) == [move(2, "a", "d", revision=5), move(1, "", "a")]


def test_tags_belong_to_a_tenant_and_a_workflow(store: Store, peer: Store) -> None:
    keys = [
        TagKey("", "bill", "b"),
        TagKey("", "order", "Live"),
        TagKey("", "order", "eu/live"),
        TagKey("", "order", "live"),
        TagKey("acme", "order", "live"),
    ]
    for key in reversed(keys):
        assert go(store.tags.write(tag(f"of {key}", key=key), move(1, "", f"of {key}")))

    assert [one.key for one in go(peer.tags.find(""))] == keys[:4]
    assert [one.key for one in go(peer.tags.find("", "order"))] == keys[1:4]
    assert [one.version for one in go(peer.tags.find("acme"))] == [f"of {keys[4]}"]
    assert list(go(peer.tags.find("other"))) == []
    assert [one.after for one in go(peer.tags.moves(keys[4]))] == [f"of {keys[4]}"]
