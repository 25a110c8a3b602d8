"""The id of a deployment, with which the names of its keys and channels begin."""

from __future__ import annotations

import secrets

from weft.ports.store import Store


async def namespace_of(store: Store) -> str:
    """Return the id of the deployment whose runs the store keeps. It is made once. Raises StoreError."""
    if store.wals is not None:
        return await store.wals.namespace()
    return (await store.access.seed("deployment", secrets.token_bytes(8))).hex()
