"""A store as people see it: its kind, its size, and the room that is left for it."""

import shutil
from pathlib import Path

from tests.contract.kit import go
from weft.ports.store import Store


def test_a_store_says_what_it_is_and_how_large(store: Store) -> None:
    found = go(store.details())

    kind = {"memory": "memory", "sqlite": "sqlite", "postgresql": "postgres"}[store.url.partition(":")[0]]
    assert found.kind == kind
    assert (found.size_bytes is None) == (kind == "memory")


def test_only_a_store_on_a_disk_of_this_machine_knows_the_room_that_is_left(store: Store) -> None:
    found = go(store.details()).free_bytes

    if not store.url.startswith("sqlite:"):
        assert found is None
        return
    disk = shutil.disk_usage(Path(store.url.removeprefix("sqlite:///")).parent)
    assert found is not None
    assert 0 < found <= disk.total
