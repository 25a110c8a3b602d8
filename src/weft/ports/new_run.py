"""The row of a new run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.core.ids import HostId, Millis, RunId, RunUid

START_MAIL = "start"
"""The id of the mail that starts a run."""


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a new run. With an ``owner`` the run starts at epoch 1, else it is ``pending``.

    ``start`` is put into its inbox. An empty ``style`` (and ``version``) is resolved by the host that claims the run.
    """

    uid: RunUid
    id: RunId
    workflow: str
    version: str
    style: str
    created_at: Millis
    owner: HostId | None = None
    parent: RunUid | None = None
    attributes: Mapping[str, Any] = {}
    start: bytes | None = None
    wake_at: Millis | None = None
    format: int = 1
    slot: str | None = None
    """The name of the workflow and the key, if the workflow has a rule about starts."""
    inputs: int = 0
    """How many inputs of a batch its start has."""
    priority: int = 0
