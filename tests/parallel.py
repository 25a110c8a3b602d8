"""Runs tests in several processes that fork from the one which has collected them: to collect costs a minute of CPU.

The processes take whole files from one queue, in the order of the run. They report every call, but a setup or teardown
only if it did not pass, or if somebody asked for durations or a file of results. A process that dies fails the test
that it was at.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import mmap
import os
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.compiled import compile_share

NUMBER = struct.Struct("I")
FINISHED = ("finished", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of processes."""
    group = parser.getgroup("parallel")
    group._addoption("-n", "--processes", type=int, default=0, help="run the tests in that many processes")


def pytest_configure(config: pytest.Config) -> None:
    """Take over the loop of the tests, if there are to be several processes."""
    if config.option.processes > 1 and not config.option.collectonly and not config.option.usepdb:
        config.pluginmanager.register(Parallel(config), "parallel-run")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile what is to be collected, in all processes of a parallel run."""
    count = session.config.option.processes
    if count > 1:
        in_processes(count, lambda number: compile_share(session.config, number, count))


def in_processes(count: int, work: Callable[[int], object]) -> None:
    """Do a work, whose parts are numbered, in as many processes, and wait for all of them."""
    pids = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work(number)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        pids.append(pid)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    if any(statuses):
        raise RuntimeError("A process failed. Its traceback is above.")


class Parallel:
    """The loop of the tests in the first process, and what stands in for its reports in the others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._says_all = config.option.durations is not None or config.option.xmlpath is not None
        self._results: Connection[Any, Any] | None = None
        """Where another process sends its results; the first has none."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests, unless some could not be collected."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None
        First(self, session).run()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run one test, and send what became of it."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed or self._says_all:
                self._send(
                    "report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
                )
        return True

    @pytest.hookimpl
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str) -> None:
        """Send a warning that a test of another process has given."""
        if self._results is not None:
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            self._send("warning", (text, warning_message.filename, warning_message.lineno, when, nodeid))

    def work(
        self,
        results: Connection[Any, Any],
        files: Iterator[list[int]],
        session: pytest.Session,
        at: mmap.mmap,
        place: int,
    ) -> None:
        """Run the tests of the files, each until the next is known: what both of them use stays."""
        self._results = results
        self._capture_apart(place)
        numbers = itertools.chain.from_iterable(files)
        number = next(numbers, None)
        while number is not None:
            following = next(numbers, None)
            NUMBER.pack_into(at, place * NUMBER.size, number)
            self._config.hook.pytest_runtest_protocol(
                item=session.items[number], nextitem=None if following is None else session.items[following]
            )
            number = following
        results.send(FINISHED)

    def _send(self, kind: str, what: Any) -> None:
        assert self._results is not None
        self._results.send((kind, what))

    def _capture_apart(self, place: int) -> None:
        """Let go of the files in which the first process captures output, and of its folder."""
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        for each in (capture._global_capturing.out, capture._global_capturing.err):
            if hasattr(each, "targetfd"):
                # The file object stays: modules may have kept it as sys.stderr when they were imported.
                with tempfile.TemporaryFile(buffering=0) as apart:
                    os.dup2(apart.fileno(), each.tmpfile.fileno(), inheritable=False)
        folders: Any = self._config._tmp_path_factory  # type: ignore[attr-defined]
        folders._basetemp = folders.getbasetemp() / f"process-{place}"
        folders._basetemp.mkdir(mode=0o700)


class First:
    """The process that has collected the tests: starts the others, and passes on what they report."""

    def __init__(self, parallel: Parallel, session: pytest.Session) -> None:
        self._parallel = parallel
        self._session = session
        self._hook = session.config.hook
        numbered = itertools.groupby(range(len(session.items)), key=lambda number: session.items[number].path)
        self._files = [list(found) for _, found in numbered]
        self._processes = min(session.config.option.processes, len(self._files))
        self._at = mmap.mmap(-1, NUMBER.size * max(self._processes, 1))
        """Which test each process is at."""
        self._pids: dict[Connection[Any, Any], int] = {}
        self._places: dict[Connection[Any, Any], int] = {}
        self._reported: set[str] = set()
        self._finished: set[Connection[Any, Any]] = set()
        self._causes: dict[Connection[Any, Any], str] = {}
        """The traceback of each process that an exception ended."""

    def run(self) -> None:
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        queue, end = os.pipe()
        os.write(end, b"".join(map(NUMBER.pack, range(len(self._files)))))
        os.close(end)
        try:
            for place in range(self._processes):
                self._start(place, queue)
            os.close(queue)
            while self._pids:
                for results in wait(list(self._pids)):
                    self._receive(results)  # type: ignore[arg-type]
        finally:
            for results, pid in self._pids.items():
                results.close()  # what a test that swallows the interrupt reports next ends its process
                os.kill(pid, signal.SIGINT)
            for pid in self._pids.values():
                os.waitpid(pid, 0)
        missing = [item.nodeid for item in self._session.items if item.nodeid not in self._reported]
        if missing:
            self._session.shouldfail = f"not run, as a process died: {', '.join(missing)}"
            raise self._session.Failed(self._session.shouldfail)

    def _start(self, place: int, queue: int) -> None:
        results, sending = Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for each in (results, *self._pids):
                each.close()
            try:
                self._parallel.work(sending, self._queued(queue), self._session, self._at, place)
            except BaseException:
                with contextlib.suppress(OSError):  # the first process was interrupted, and wants no results
                    sending.send(("died", traceback.format_exc()))
            finally:
                atexit._run_exitfuncs()
                os._exit(0)
        sending.close()
        self._pids[results], self._places[results] = pid, place

    def _queued(self, queue: int) -> Iterator[list[int]]:
        while number := os.read(queue, NUMBER.size):
            yield self._files[NUMBER.unpack(number)[0]]

    def _receive(self, results: Connection[Any, Any]) -> None:
        try:
            kind, what = results.recv()
        except EOFError:
            self._end(results)
            return
        if kind == "report":
            self._report(self._hook.pytest_report_from_serializable(config=self._session.config, data=what))
        elif kind == "warning":
            text, filename, line, when, test = what
            message = warnings.WarningMessage(UserWarning(text), UserWarning, filename, line)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": message, "when": when, "nodeid": test, "location": None}
            )
        elif kind == "died":
            self._causes[results] = what
        else:
            self._finished.add(results)

    def _report(self, report: pytest.TestReport) -> None:
        self._hook.pytest_runtest_logreport(report=report)
        if report.when == "call" or not report.passed:
            self._hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
        self._reported.add(report.nodeid)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _end(self, results: Connection[Any, Any]) -> None:
        """Take note that a process has ended, and fail the test that it was at, if it had not finished."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._pids.pop(results), 0)[1])
        if results in self._finished:
            return
        (number,) = NUMBER.unpack_from(self._at, self._places[results] * NUMBER.size)
        item = self._session.items[number]
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        said = f"The process of this test ended {how} while it ran.\n{self._causes.get(results, '')}"
        self._report(pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))
