"""The table of reads has every read that commands make, and can pass on what it answers."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from weft.server.store_reads import read_methods

SRC = Path(__file__).parents[2] / "src" / "weft"
CALL = re.compile(r"\bstore\.([a-z_]+)\.([a-z_]+)\(")
BESIDE_THE_STORE = {
    # Commands that change something go through other routes.
    "access.add", "access.is_open", "access.keys", "access.revoke", "tasks.limit",
    "wals.acknowledge_losses", "wals.losses",
    # The server that a command starts describes itself.
    "hosts.describe",
    # The server judges which hosts are gone.
    "hosts.find_dead",
}  # fmt: skip


def test_every_read_of_a_command_is_in_the_table() -> None:
    files = [path for folder in ("cli", "observe") for path in (SRC / folder).rglob("*.py")]
    used = {(f"{port}.{method}", path.name) for path in files for port, method in CALL.findall(path.read_text())}
    assert ("log.inbox", "show.py") in used, "the pattern finds what is there"
    missing = [one for one in sorted(used) if one[0] not in read_methods() and one[0] not in BESIDE_THE_STORE]
    assert missing == [], "add it to weft.server.store_reads, and its port to weft.authoring.remote_store"


@pytest.mark.parametrize("name", sorted(read_methods()))
def test_the_types_of_a_read_can_travel(name: str) -> None:
    method = read_methods()[name]
    for of in (method.answer, *method.arguments.values()):
        assert msgspec.json.Decoder(of) is not None
