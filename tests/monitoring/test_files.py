"""Alerts and the dashboard name metrics that the server really has, and every alert has a runbook."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import debian
from tests.monitoring.files import NAME, RUNBOOKS, dashboard, expressions, metrics, named_metrics, rules
from tests.server.kit import Server, serving
from tests.server.shop import shop
from weft.cli import main
from weft.cli.monitoring import FILES, read_monitoring

UNIT_TESTS = Path(__file__).parent / "alerts_test.yaml"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/weft.db"  # a store with a size, on a disk
    with serving(shop(url)) as found:
        found.result(found.start("hello", name="ann"))
        yield found


@pytest.fixture(scope="module")
def samples(server: Server) -> dict[str, float]:
    return metrics(server.get("/metrics").raw.decode())


def test_every_metric_that_is_named_is_served(samples: dict[str, float]) -> None:
    served = {name.partition("{")[0] for name in samples}

    assert len(named_metrics()) >= 20, "the pattern finds what is there"
    assert named_metrics() - served == set()


def test_every_metric_that_is_served_has_a_place_in_the_dashboard_or_an_alert(samples: dict[str, float]) -> None:
    bases = {re.sub(r"_(bucket|sum|count|created)$", "", name.partition("{")[0]) for name in samples}
    named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named_metrics()}
    spare = {"weft_scheduled_times_total", "weft_commit_bytes", "weft_live_clients"}

    assert bases - named - spare == set()


def test_every_label_that_is_named_exists(samples: dict[str, float]) -> None:
    labels = {label for name in samples for label in re.findall(r"(\w+)=", name)} | {"job", "instance", "le"}
    asked = {label for text in expressions() for label in re.findall(r"(\w+)(?:=~|!~|!=|=)\"", text)}
    grouped = {
        label.strip()
        for text in expressions()
        for group in re.findall(r"by \(([^)]*)\)", text)
        for label in group.split(",")
    }

    assert asked | grouped <= labels


def test_no_metric_has_a_label_that_a_user_chose(samples: dict[str, float]) -> None:
    labels = {label for name in samples for label in re.findall(r"(\w+)=", name)}

    assert labels <= {"kind", "outcome", "route", "status", "state", "le", "version"}


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    named = {rule["alert"]: rule["annotations"]["runbook"] for rule in rules()}
    pages = {page.name for page in RUNBOOKS.glob("*.md")} - {"README.md"}

    assert {Path(path).name for path in named.values()} == pages
    assert len(set(named.values())) == len(named), "a page for each"
    for alert, path in named.items():
        text = (RUNBOOKS.parents[1] / path).read_text()
        assert text.startswith(f"# {alert}\n"), path
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["What it means", "Look", "Mend"], path


def test_every_alert_is_in_the_overview() -> None:
    overview = (RUNBOOKS / "README.md").read_text()
    assert [rule["alert"] for rule in rules() if f"[{rule['alert']}]" not in overview] == []


def test_panels_have_a_title_a_description_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    places: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        places |= cells
        assert panel["title"], panel["id"]
        assert panel["description"].endswith("."), panel["title"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert max(x for x, _ in places) == 23


@pytest.mark.parametrize("word", list(FILES))
def test_the_files_are_printed_as_they_are(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitoring", word]) == 0
    assert capsys.readouterr().out == read_monitoring(FILES[word])


def test_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitoring", "logs"]) == 2
    assert "weft monitoring alerts, or: dashboard" in capsys.readouterr().err


def test_promtool_accepts_the_alerts(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(read_monitoring("alerts.yaml"))

    done = promtool("check", "rules", str(tmp_path / "alerts.yaml"))

    assert done.returncode == 0, done.stderr
    assert f"{len(rules())} rules found" in done.stdout


def test_every_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(read_monitoring("alerts.yaml"))
    (tmp_path / "alerts_test.yaml").write_text(UNIT_TESTS.read_text())

    done = promtool("test", "rules", str(tmp_path / "alerts_test.yaml"))

    assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", UNIT_TESTS.read_text()))
    assert tested == {rule["alert"] for rule in rules()}


def test_promtool_accepts_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    texts = [text for text in expressions() if NAME.search(text) and not text.startswith("label_values")]
    plain = [" ".join(text.split()).replace("$__rate_interval", "5m").replace("$job", "weft") for text in texts]
    records = [
        f"      - record: panel:number:{n}\n        expr: >-\n          {text}\n" for n, text in enumerate(plain)
    ]
    (tmp_path / "panels.yaml").write_text("groups:\n  - name: panels\n    rules:\n" + "".join(records))

    done = promtool("check", "rules", str(tmp_path / "panels.yaml"))

    assert done.returncode == 0, done.stderr


def test_promtool_accepts_the_metrics(server: Server) -> None:
    done = subprocess.run(
        [debian.find(debian.PROMTOOL), "check", "metrics"],
        input=server.get("/metrics").raw,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    command = [debian.find(debian.PROMTOOL), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)
