"""A rolling upgrade: hosts with old and new code share a store, and runs that are open go on with the new code."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from weft.cli import main

WEFT = str(Path(sys.executable).with_name("weft"))
RUNS = 8
APP = """
import weft

app = weft.App()
LEDGER = {ledger!r}

def record(*words: str) -> None:
    with open(LEDGER, "a") as file:
        file.write(" ".join(words) + "\\n")

@app.step
async def charge(order_id: str) -> str:
    record("charge", order_id)
    return f"receipt-{{order_id}}"
"""
OLD = """
@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    receipt = await charge(order_id)
    await ctx.receive("packed")
    return f"{receipt} by post"
"""
NEW = """
@app.step
async def notify(order_id: str) -> str:
    record("notify", order_id)
    return order_id

@app.workflow
async def order(ctx: weft.Context, order_id: str) -> str:
    receipt = await charge(order_id)
    await ctx.receive("packed")
    await notify(order_id)
    return f"{receipt} by courier"
"""
RENAMED = NEW.replace("await charge(order_id)", "await charge_card(order_id)").replace(
    "@app.workflow", '@app.step\nasync def charge_card(order_id: str) -> str:\n    record("charge_card", order_id)\n'
    '    return f"receipt-{order_id}"\n\n@app.workflow'
)  # fmt: skip


class Site:
    """A store, and the hosts that a test starts and stops on it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def deploy(self, name: str, code: str) -> str:
        """Write the code of a release; the name of its file."""
        text = APP.format(ledger=str(self.folder / "ledger")) + code
        (self.folder / f"{name}.py").write_text(text)
        return f"{name}.py"

    @contextlib.contextmanager
    def host(self, file: str) -> Iterator[subprocess.Popen[str]]:
        """A host with this code, until the end of the block or until it is stopped."""
        command = [WEFT, "serve", file, "--port", "0", "--url", self.url]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            said = running.stderr.readline()
            assert re.search(r"serving http://", said), said + running.stderr.read()
            try:
                yield running
            finally:
                running.kill()

    def weft(self, *words: str) -> int:
        return main([*words, "--url", self.url])

    def statuses(self, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
        capsys.readouterr()
        assert self.weft("list", "--limit", "100", "--json") == 0
        return Counter(re.findall(r'"status": ?"(\w+)"', capsys.readouterr().out))

    def until(self, capsys: pytest.CaptureFixture[str], **wanted: int) -> None:
        while self.statuses(capsys) != Counter(wanted):
            time.sleep(0.05)

    def charged(self) -> int:
        file = self.folder / "ledger"
        return file.read_text().count("charge ") if file.exists() else 0

    def ledger(self) -> Counter[str]:
        return Counter((self.folder / "ledger").read_text().splitlines())


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.proof)])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(tmp_path)
    if request.param == "sqlite":
        return Site(tmp_path, f"sqlite:///{tmp_path}/weft.db")
    url = servers.database("upgrade")
    servers.run(_migrated(url))
    servers.empty(url)
    return Site(tmp_path, url)


async def _migrated(url: str) -> None:
    from weft.stores import open_store

    store = open_store(url)
    await store.open()
    await store.close()


def stop(host: subprocess.Popen[str]) -> None:
    host.send_signal(signal.SIGTERM)
    host.communicate(timeout=120)
    assert host.returncode == 0


def start_orders(site: Site, numbers: range) -> None:
    for n in numbers:
        assert site.weft("start", "order", f"order_id=o-{n}", "--id", f"order-{n}") == 0


@pytest.mark.proof
def test_open_runs_go_on_with_the_new_code_and_repeat_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = site.deploy("old", OLD), site.deploy("new", NEW)
    with site.host(old) as first, site.host(old) as second:
        start_orders(site, range(RUNS))
        while site.charged() < RUNS:
            time.sleep(0.02)
        with site.host(new) as third:
            stop(first)
            with site.host(new):
                stop(second)
                start_orders(site, range(RUNS, RUNS + 2))
                assert site.statuses(capsys)["held"] == 0
                for n in range(RUNS + 2):
                    assert site.weft("send", f"order-{n}", "packed") == 0
                site.until(capsys, completed=RUNS + 2)
            stop(third)

    expected = {f"{step} o-{n}": 1 for n in range(RUNS + 2) for step in ("charge", "notify")}
    assert site.ledger() == expected, "every step once, whichever host performed it"


@pytest.mark.proof
def test_code_that_does_not_fit_holds_its_runs_and_the_old_code_goes_on_with_them(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    old, bad = site.deploy("old", OLD), site.deploy("bad", RENAMED)
    with site.host(old) as first:
        start_orders(site, range(2))
        while site.charged() < 2:
            time.sleep(0.02)
        stop(first)
    assert site.weft("check", bad, "--live") == 1, "which says so before the deploy"
    with site.host(bad) as second:
        for n in range(2):
            assert site.weft("send", f"order-{n}", "packed") == 0
        site.until(capsys, held=2)
        stop(second)
    with site.host(old):
        for n in range(2):
            assert site.weft("resume", f"order-{n}") == 0
        site.until(capsys, completed=2)

    assert site.ledger() == {"charge o-0": 1, "charge o-1": 1}
