"""The history of a tag on every store, against a model: a list of versions and a position in it."""

import random

import pytest

from tests import scale
from tests.contract.kit import go
from weft.errors import NotFound, Refused
from weft.ports.store import Store
from weft.runtime.clock import SystemClock
from weft.runtime.tags import WorkflowTags
from weft.runtime.version_refs import VersionRef

pytestmark = scale.MARKS


class Model:
    """All versions that a tag had, and where it stands."""

    def __init__(self) -> None:
        self.versions = [""]
        self.at = 0

    def move(self, version: str) -> None:
        if version != self.versions[self.at]:
            self.versions[self.at + 1 :] = [version]
            self.at += 1

    def step(self, by: int) -> bool:
        if not 0 <= self.at + by < len(self.versions):
            return False
        self.at += by
        return True

    def back(self, moves: int) -> str:
        return self.versions[self.at - moves] if moves <= self.at else ""


@pytest.mark.parametrize("seed", scale.first(1, range(60)))
def test_any_commands_in_any_order(store: Store, peer: Store, seed: int) -> None:
    chance = random.Random(seed)
    tenants = {
        tenant: [WorkflowTags(one.tags, tenant, SystemClock()) for one in (store, peer)] for tenant in ("", "acme")
    }
    models: dict[tuple[str, str], Model] = {}
    for n in range(40):
        key = tenant, tag = chance.choice(["", "acme"]), chance.choice(["live", "eu/live"])
        model = models.setdefault(key, Model())
        tags = chance.choice(tenants[tenant])
        if chance.random() < 0.5:
            version = f"v{chance.randrange(5)}"
            go(tags.move("order", tag, version, by="ann", reason=str(n)))
            model.move(version)
        else:
            step = chance.choice([-1, 1])
            made = model.step(step)
            try:
                go((tags.undo if step < 0 else tags.redo)("order", tag, by="bob"))
            except (Refused, NotFound):
                assert not made
            else:
                assert made
        _compare(tenants[tenant][n % 2], tag, model, exists=len(model.versions) > 1)


def _compare(tags: WorkflowTags, tag: str, model: Model, *, exists: bool) -> None:
    if not exists:
        return
    found = go(tags.history("order", tag))
    assert (found.tag.version, found.tag.cursor, found.tag.moves) == (model.back(0), model.at, len(model.versions) - 1)
    steps = [(move.number, move.before, move.after) for move in reversed(found.moves)]
    assert steps == [(n + 1, model.versions[n], model.versions[n + 1]) for n in range(len(model.versions) - 1)]
    for back in range(model.at + 2):
        ref = VersionRef("order", tag=tag, back=back)
        if model.back(back):
            assert go(tags.version(ref)) == model.back(back)
        else:
            with pytest.raises(NotFound):
                go(tags.version(ref))


def test_undoing_three_moves_is_where_it_began(store: Store) -> None:
    tags = WorkflowTags(store.tags, "", SystemClock())
    for version in ("a", "b", "c"):
        go(tags.move("order", "live", version))

    for _ in range(3):
        last = go(tags.undo("order", "live", by="ann", reason="wrong"))

    assert (last.version, last.cursor, last.moves, last.by, last.reason) == ("", 0, 3, "ann", "wrong")
    assert list(go(tags.list("order"))) == []
    with pytest.raises(Refused):
        go(tags.undo("order", "live"))
    assert [go(tags.redo("order", "live")).version for _ in range(3)] == ["a", "b", "c"]


def test_a_new_move_cuts_what_could_be_redone(store: Store) -> None:
    tags = WorkflowTags(store.tags, "", SystemClock())
    for version in ("a", "b", "c"):
        go(tags.move("order", "live", version))
    go(tags.undo("order", "live"))
    go(tags.undo("order", "live"))

    go(tags.move("order", "live", "d"))

    with pytest.raises(Refused) as refused:
        go(tags.redo("order", "live"))
    assert refused.value.code == "tag.no_move"
    assert [move.after for move in go(tags.history("order", "live")).moves] == ["d", "a"]


def test_a_tenant_sees_the_operators_tag_until_it_has_its_own(store: Store) -> None:
    operator, acme = (WorkflowTags(store.tags, tenant, SystemClock()) for tenant in ("", "acme"))
    go(operator.move("order", "live", "a"))
    assert go(acme.version(VersionRef("order", tag="live"))) == "a"
    with pytest.raises(NotFound):
        go(acme.undo("order", "live"))

    go(acme.move("order", "live", "b"))

    assert go(acme.version(VersionRef("order", tag="live"))) == "b"
    assert go(operator.version(VersionRef("order", tag="live"))) == "a"
    assert [tag.version for tag in go(acme.list())] == ["b"]
