"""What app.model and [tool.weft.models] accept, and what they refuse."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.agents.models.ports import find_wire
from weft.errors import BadValue, NameTaken, UsageError

URL = "https://api.example.com/v1"


def alias_of(name: str = "fast", **options: Any) -> Any:
    app = weft.App()
    app.model(name, **{"url": URL, **options})
    return app.registered.models.aliases.get(name)


def test_a_model_has_the_name_of_its_alias_unless_told_otherwise() -> None:
    assert alias_of().model == "fast"
    assert alias_of(model="gpt-5-mini").model == "gpt-5-mini"
    assert alias_of(url=f"{URL}/").url == URL


def test_a_call_has_the_policies_of_its_model() -> None:
    alias = alias_of(timeout="30s", retries=weft.Retry(2, "fixed", "5s"))

    assert (alias.policy.queue, alias.policy.effect) == ("model.fast", "idempotent")
    assert (alias.policy.attempts_max, alias.policy.delay_ms) == (2, 5_000)
    assert alias.timeout_ms == 30_000
    assert alias.policy.timeout_ms > alias.timeout_ms


@pytest.mark.parametrize(
    "options",
    [
        {"url": "api.example.com"},
        {"url": "https://user:pass@api.example.com/v1"},
        {"url": "https://api.example.com/v1?key=abc"},
        {"url": "ftp://api.example.com"},
        {"url": "https://[::1"},
        {"url": 5},
        {"model": ""},
        {"key": "sk-live-12345678"},
        {"context": 0},
        {"output": True},
        {"output": -1},
        {"prices": "0.25"},
        {"fallback": "local"},
        {"fallback": ["fast"]},
        {"fallback": ["no/such"]},
        {"timeout": "2h"},
        {"retries": -1},
        {"limit": 5},
        {"limit": weft.Limit(concurrency=1, key="alias")},
        {"options": []},
        {"options": {"f": float("nan")}},
        {"options": {1: 2}},
        {"options": {"model": "another"}},
        {"options": {"n": 5}},
        {"fallbacks": ["local"]},
        {"supports": ["magic"]},
        {"supports": "tools"},
        {"cache": "soon"},
    ],
)
def test_what_no_model_can_have_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        alias_of(**options)
    assert refused.value.hint
    assert "sk-live" not in str(refused.value)
    assert "pass@" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "x" * 65, 5, "é"])
def test_a_bad_name_is_refused(name: Any) -> None:
    with pytest.raises(BadValue, match="cannot be called"):
        alias_of(name)


def test_two_models_cannot_have_one_name_unless_they_are_the_same() -> None:
    app = weft.App()
    app.model("fast", url=URL)
    app.model("fast", url=URL)
    with pytest.raises(NameTaken):
        app.model("fast", url=URL, model="other")


def test_an_app_has_the_models_of_its_groups() -> None:
    app, group = weft.App(), weft.Group("shop.")
    group.model("fast", url=URL)
    app.include(group)
    group.model("late", url=URL, fallback=["fast"])

    assert app.registered.models.names() == ["fast", "late"]
    assert app.registered.models.aliases.chain("late") == ["late", "fast"]


def test_a_fallback_that_does_not_exist_is_named() -> None:
    app = weft.App()
    app.model("fast", url=URL, fallback=["lokal"])
    app.model("local", url=URL)

    with pytest.raises(UsageError, match='Did you mean "local"'):
        app.registered.models.aliases.chain("fast")


@pytest.mark.parametrize("price", ["free", "-1", "NaN", "1e99", 0.25, True, None])
def test_a_price_is_exact_and_not_negative(price: Any) -> None:
    with pytest.raises(BadValue, match="is not a price"):
        weft.Prices(price, "1")


def test_prices_are_texts_decimals_or_integers() -> None:
    prices = weft.Prices("0.25", Decimal(2), currency="EUR")

    assert (prices.input, prices.cached, prices.output) == (Decimal("0.25"), Decimal("0.25"), Decimal(2))
    with pytest.raises(BadValue, match="not a currency"):
        weft.Prices("1", "1", currency="dollars")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pyproject.toml"


def test_a_project_declares_models_too_and_the_code_comes_first(project: Path) -> None:
    project.write_text(
        """
        [tool.weft.models.fast]
        url = "https://elsewhere.example.com/v1"
        [tool.weft.models.local]
        url = "http://127.0.0.1:8080/v1"
        key = "env:LOCAL_KEY"
        prices = {input = "0.1", output = "0.2"}
        limit = {concurrency = 2}
        options = {temperature = 0}
        timeout = "5m"
        """
    )
    app = weft.App()
    app.model("fast", url=URL)

    local = app.registered.models.aliases.get("local")
    assert app.registered.models.names() == ["fast", "local"]
    assert app.registered.models.aliases.get("fast").url == URL
    assert (local.url, local.timeout_ms, local.options) == ("http://127.0.0.1:8080/v1", 300_000, {"temperature": 0})
    assert local.key == weft.Secret("env:LOCAL_KEY")
    assert "step/weft.model/local" in app.catalogue().limits()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = 5", "models is not a table"),
        ("models.fast = 5", r"\[tool.weft.models.fast\] is not a table"),
        ("[tool.weft.models.fast]", "is not the address of an API"),
        ('[tool.weft.models.fast]\nurl = "https://x.example/v1"\nprice = 5', 'Did you mean "prices"'),
        ('[tool.weft.models.fast]\nurl = "https://x.example/v1"\nkey = "sk-12345678"', "is not valid"),
        ('[tool.weft.models.fast]\nurl = "https://x.example/v1"\nprices = {inputs = "1"}', "is not valid"),
        ('[tool.weft.models.fast]\nurl = "https://x.example/v1"\nlimit = 5', "is not valid"),
    ],
)
def test_a_bad_table_is_refused_by_its_name(project: Path, text: str, message: str) -> None:
    project.write_text(f"[tool.weft]\n{text}\n")

    with pytest.raises(UsageError, match=message) as refused:
        _ = weft.App().registered.models.aliases
    assert "sk-1234" not in str(refused.value)


def test_an_unknown_wire_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="chat, responses") as unknown:
        find_wire(alias_of(api="chatt"))
    assert unknown.value.code == "model.unknown_api"


def test_a_package_adds_a_wire_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "echo_wire-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-wire\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[weft.models]\necho = echo_wire_of_a_test:make\n")
    (tmp_path / "echo_wire_of_a_test.py").write_text("def make(parts):\n    return ('echo', parts)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    made: Any = find_wire(alias_of(api="echo"))
    assert made("parts") == ("echo", "parts")
    with pytest.raises(UsageError, match="chat, echo, responses"):
        find_wire(alias_of(api="ecko"))
