"""Saved views: filters that everybody in a tenant sees."""

import msgspec

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.ports.saved_views import SavedView
from weft.ports.store import Store

STUCK = SavedView(tenant="a", name="stuck", query="unchanged=1h", saved_by="ann", saved_at=Millis(5))


def test_a_saved_view_is_listed_for_its_tenant_only(store: Store, peer: Store) -> None:
    go(store.saved_views.put(STUCK))

    assert list(go(peer.saved_views.list("a"))) == [STUCK]
    assert list(go(peer.saved_views.list(""))) == []


def test_views_are_listed_by_name_and_replaced_by_name(store: Store) -> None:
    other = msgspec.structs.replace(STUCK, name="failed", query="status=failed")
    again = msgspec.structs.replace(STUCK, query="unchanged=2h", saved_by="bob", saved_at=Millis(6))
    for view in (STUCK, other, again):
        go(store.saved_views.put(view))

    assert list(go(store.saved_views.list("a"))) == [other, again]


def test_a_view_is_removed_once(store: Store) -> None:
    go(store.saved_views.put(STUCK))

    assert not go(store.saved_views.remove("b", "stuck"))
    assert go(store.saved_views.remove("a", "stuck"))
    assert not go(store.saved_views.remove("a", "stuck"))
    assert list(go(store.saved_views.list("a"))) == []
