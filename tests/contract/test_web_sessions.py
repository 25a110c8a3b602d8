"""Sessions of browsers: kept as digests, found until they end, and not kept for ever."""

from __future__ import annotations

from typing import Any

from tests.contract.kit import go
from weft.core.ids import Millis
from weft.ports.store import Store
from weft.ports.web_sessions import SessionOwner, WebSession

ANN = SessionOwner(name="ann é", scopes=["read", "start"], groups=["role:ops"], tenant="acme")


def session(digest: str = "d1", **fields: Any) -> WebSession:
    values: dict[str, Any] = {"owner": ANN, "created_at": 1_000, "seen_at": 1_000, "expires_at": 9_000}
    return WebSession(digest=digest, **(values | fields))


def test_a_session_is_found_by_its_digest_as_it_was_kept(store: Store) -> None:
    by_key = session("d2", owner=SessionOwner(key="digest of a key"))
    for one in (session(), by_key):
        go(store.web_sessions.add(one))

    assert go(store.web_sessions.find("d1")) == session()
    assert go(store.web_sessions.find("d2")) == by_key
    assert go(store.web_sessions.find("d3")) is None


def test_a_session_that_is_used_says_when(store: Store) -> None:
    go(store.web_sessions.add(session()))

    go(store.web_sessions.touch("d1", now=Millis(5_000)))
    go(store.web_sessions.touch("d2", now=Millis(5_000)))

    assert go(store.web_sessions.find("d1")) == session(seen_at=Millis(5_000))
    assert go(store.web_sessions.find("d2")) is None


def test_a_session_ends_once(store: Store) -> None:
    go(store.web_sessions.add(session()))
    go(store.web_sessions.add(session("d2")))

    assert go(store.web_sessions.end("d1"))
    assert not go(store.web_sessions.end("d1"))
    assert go(store.web_sessions.find("d1")) is None
    assert go(store.web_sessions.find("d2")) == session("d2")


def test_a_new_session_clears_away_those_that_have_expired(store: Store) -> None:
    go(store.web_sessions.add(session(expires_at=Millis(2_000))))
    go(store.web_sessions.add(session("d2", expires_at=Millis(2_001))))

    go(store.web_sessions.add(session("d3", created_at=Millis(2_000))))

    assert go(store.web_sessions.find("d1")) is None
    assert go(store.web_sessions.find("d2")) is not None
