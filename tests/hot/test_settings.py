"""An app says in code, environment or project which Redis it uses and what for; bad choices are refused."""

from pathlib import Path

import pytest

import weft
from weft.errors import UsageError
from weft.stores import redis_hints, redis_use

POSTGRES = "postgresql://postgres@db/weft"


def test_without_settings_there_is_no_redis() -> None:
    assert weft.App(POSTGRES).redis is None
    assert redis_hints() is None


def test_redis_alone_is_an_aid() -> None:
    use = weft.App(POSTGRES, redis="redis://cache").redis
    assert use is not None
    assert (use.url, use.role) == ("redis://cache", "hints")


def test_hot_chooses_the_hot_path() -> None:
    use = weft.App(POSTGRES, redis="redis://cache", hot="10s").redis
    assert use is not None
    assert (use.role, use.hot) == ("hot", "10s")


def test_code_wins_over_the_environment_which_wins_over_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.weft]\nredis = "redis://project"\nhot = "end"\n')
    chosen = [redis_use(store=POSTGRES)]
    monkeypatch.setenv("WEFT_REDIS", "redis://environment")
    monkeypatch.setenv("WEFT_HOT", "event")
    chosen += [redis_use(store=POSTGRES), redis_use("redis://code", "2s", store=POSTGRES)]
    assert [(use.url, use.hot) for use in chosen if use is not None] == [
        ("redis://project", "end"),
        ("redis://environment", "event"),
        ("redis://code", "2s"),
    ]


def test_a_process_that_hosts_nothing_uses_redis_as_an_aid_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REDIS", "redis://environment")
    monkeypatch.setenv("WEFT_HOT", "event")
    use = redis_hints()
    assert use is not None
    assert use.role == "hints"


def test_hot_without_redis_is_refused() -> None:
    with pytest.raises(UsageError, match="hot='event' needs a Redis server") as refused:
        _ = weft.App(POSTGRES, hot="event").redis
    assert "WEFT_REDIS" in refused.value.hint


@pytest.mark.parametrize("store", ["sqlite:///weft.db", "memory://"])
def test_hot_with_another_store_than_postgres_is_refused(store: str) -> None:
    with pytest.raises(UsageError, match="needs a store in Postgres") as refused:
        _ = weft.App(store, redis="redis://cache", hot="event").redis
    assert 'durability="fast"' in refused.value.hint


@pytest.mark.parametrize("hot", ["often", "-1s", "0s", "1 fortnight"])
def test_a_policy_that_does_not_exist_is_refused_when_the_app_is_made(hot: str) -> None:
    with pytest.raises(UsageError, match=f"hot='{hot}' is not a policy"):
        weft.App(POSTGRES, redis="redis://cache", hot=hot)


def test_a_wrong_url_is_refused_when_the_app_is_made() -> None:
    with pytest.raises(UsageError, match="is not the URL of a Redis server"):
        weft.App(POSTGRES, redis="cache:6379")


def test_a_wrong_url_in_the_environment_is_refused_when_the_app_is_hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_REDIS", "memcached://cache")
    with pytest.raises(UsageError, match="is not the URL of a Redis server"):
        _ = weft.App("memory://").redis
