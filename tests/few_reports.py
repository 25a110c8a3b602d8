"""Sends less from the processes of a parallel run: six messages about each of thousands of tests cost seconds."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


def use(config: pytest.Config) -> None:
    """Leave out the reports that say nothing, unless somebody asked for durations or a file of results."""
    is_worker = hasattr(config, "workerinput")
    if is_worker and config.option.durations is None and config.option.xmlpath is None:
        config.pluginmanager.register(FewReports())


class FewReports:
    """Runs a test as pytest does, but does not announce it, and reports a setup or teardown only if it failed."""

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run one test, and report what became of it."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
