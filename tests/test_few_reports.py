"""A process of a parallel run reports every call, and every setup and teardown that did not pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import few_reports


def _reports(monkeypatch: pytest.MonkeyPatch, **outcomes: str) -> list[str]:
    """Return which phases of a test are reported."""
    made = [SimpleNamespace(when=when, passed=outcome == "passed") for when, outcome in outcomes.items()]
    told: list[str] = []
    hooks = SimpleNamespace(
        pytest_runtest_logreport=lambda report: told.append(report.when),
        pytest_runtest_logfinish=lambda nodeid, location: told.append("end"),
    )
    item: Any = SimpleNamespace(ihook=hooks, nodeid="a test", location=("", 0, ""))
    monkeypatch.setattr(few_reports, "runtestprotocol", lambda *_, **__: made)
    assert few_reports.FewReports().pytest_runtest_protocol(item, None)
    return told


@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_a_call_is_always_reported(monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    assert _reports(monkeypatch, setup="passed", call=outcome, teardown="passed") == ["call", "end"]


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_a_setup_that_did_not_pass_is_reported(monkeypatch: pytest.MonkeyPatch, outcome: str) -> None:
    assert _reports(monkeypatch, setup=outcome, teardown="passed") == ["setup", "end"]


def test_a_teardown_that_failed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _reports(monkeypatch, setup="passed", call="passed", teardown="failed") == ["call", "teardown", "end"]
