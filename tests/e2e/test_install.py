"""What `pip install weft` brings is enough for SQLite, code, graphs and commands; the rest says what to install.

The environment has the base dependencies and nothing else: their files are linked from the one that runs the tests, so
nothing is fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from weft.extras import MODULES

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# Modules that import a package of an extra. Each stands behind one call of `require`.
NEED_AN_EXTRA = {
    "http": "weft.authoring.remote weft.authoring.remote_bulk weft.authoring.remote_bundles "
    "weft.authoring.remote_errors weft.authoring.remote_operations weft.authoring.remote_policy "
    "weft.authoring.remote_schedules weft.authoring.remote_service weft.authoring.remote_store "
    "weft.authoring.remote_tools weft.authoring.remote_workflows weft.steps.http.guard weft.steps.http.wire",
    "mcp": "weft.server.mcp.exchange weft.server.mcp.forms weft.server.mcp.protocol weft.server.mcp.resources "
    "weft.server.mcp.run_tools weft.server.mcp.run_wait weft.server.mcp.sessions weft.server.mcp.stdio "
    "weft.server.mcp.subscriptions weft.agents.mcp.child_process weft.agents.mcp.guarded_http "
    "weft.agents.mcp.results weft.agents.mcp.wire",
    "otel": "weft.ext.otel.log_records weft.ext.otel.measures weft.ext.otel.providers weft.ext.otel.run_spans "
    "weft.ext.otel.span_queue weft.ext.otel.span_records weft.ext.otel.span_sink weft.ext.otel.step_spans "
    "weft.ext.otel.telemetry",
    "postgres": "weft.stores.postgres",
    "redis": "weft.stores.hot.connection weft.stores.hot.redis_wal_server weft.stores.redis.buckets "
    "weft.stores.redis.client weft.stores.redis.hints weft.stores.redis.short_answers",
    "s3": "weft.stores.blobs.s3",
    "server": "weft.server.api weft.server.buffered_http weft.server.telemetry weft.server.listener "
    "weft.server.services weft.server.route_table weft.server.endpoints.live weft.server.endpoints.health "
    "weft.server.endpoints.step_logs weft.server.installation weft.server.model_metrics weft.server.stream_metrics",
}


def base_distributions() -> set[str]:
    """The names of the base dependencies and of all that they need."""
    found: set[str] = set()
    wanted = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    while wanted:
        requirement = wanted.pop()
        if requirement.name in found or not _applies(requirement):
            continue
        found.add(requirement.name)
        wanted += [Requirement(text) for text in metadata.requires(requirement.name) or []]
    return found


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment with Weft and its base dependencies."""
    place = tmp_path_factory.mktemp("base")
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    for name in base_distributions():
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            target = site / top
            if not target.exists():
                target.symlink_to(Path(str(distribution.locate_file(top))))
    (site / "weft").symlink_to(ROOT / "src" / "weft")
    (place / "bin" / "weft").write_text("import sys\nfrom weft.cli import main\nsys.exit(main())\n")
    return str(place / "bin" / "python")


def weft(python: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run(python, str(Path(python).with_name("weft")), *arguments, folder=folder)


def run(python: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT", "PYTHON", "COV"))}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The README's first example, without its waits."""
    found = re.search(r"```python\n(# app\.py\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "app.py").write_text(found[1].replace("time.sleep(1)", "time.sleep(0)").replace('"5s"', '"0s"'))
    return tmp_path


def test_the_example_of_the_readme_runs(python: str, app: Path) -> None:
    done = run(python, "app.py", folder=app)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["charge o-1", "pack o-1", "ship o-1", "-> ship o-1"]
    shown = weft(python, "show", "order-o-1", folder=app)
    assert "completed" in shown.stdout


@pytest.mark.proof
def test_weft_run_runs(python: str, app: Path) -> None:
    done = weft(python, "run", "app.py", "order", "order_id=o-2", folder=app)

    assert done.returncode == 0, done.stderr
    assert "ship o-2" in done.stdout


@pytest.mark.proof
def test_a_graph_with_conditions_runs(python: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("""
import weft
app = weft.App()
graph = app.graph({"name": "g", "nodes": {
    "a": {"pass": True, "next": [{"when": "input.n > 1", "to": "b"}, {"to": "c"}]},
    "b": {"pass": True, "save": {"state.size": "big"}},
    "c": {"pass": True, "save": {"state.size": "small"}},
}, "output": {"size": "${state.size}"}})
print(app.run(graph, {"n": 2}))
""")
    done = run(python, "app.py", folder=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "'big'" in done.stdout


@pytest.mark.proof
def test_weft_serve_says_what_to_install(python: str, app: Path) -> None:
    done = weft(python, "serve", "app.py", folder=app)

    assert done.returncode == 2
    assert done.stderr.startswith("weft: weft serve needs packages that are not installed: aiohttp, ")
    assert 'pip install "weft[server]"' in done.stderr
    assert not (app / "weft.db").exists()


USES = """
import asyncio, importlib, weft
from weft.conditions import enable_python_sandbox
from weft.pipelines.pipeline import read_pipeline
from weft.pipelines.workers import perform_killable
from weft.scripts import compile_script
from weft.stores.blobs import open_content

jq = [{"step": "jq_transform", "query": "."}]
uses = {
    "http": lambda: asyncio.run(weft.Client("http://localhost:1").__aenter__()),
    "langchain": lambda: importlib.import_module("weft.ext.langchain"),
    "lua": lambda: compile_script("lua", "return 1", []),
    "mcp": lambda: asyncio.run(weft.mcp("files", command=["files"]).wire()),
    "openai-agents": lambda: importlib.import_module("weft.ext.openai_agents"),
    "postgres": lambda: asyncio.run(weft.Client("postgresql://localhost/x").__aenter__()),
    "pydantic-ai": lambda: importlib.import_module("weft.ext.pydantic_ai"),
    "redis": lambda: asyncio.run(weft.App("memory://", redis="redis://localhost:1").__aenter__()),
    "s3": lambda: open_content("s3://bucket"),
    "sandbox": enable_python_sandbox,
    "server": lambda: weft.App("memory://").router,
    "tables": lambda: perform_killable(read_pipeline(jq).steps, jq, b"1", {}, 1.0),
}
for extra, use in uses.items():
    try:
        use()
    except weft.MissingExtra as error:
        print(extra, error.code, error.hint)
"""


@pytest.mark.proof
def test_what_needs_an_extra_names_its_command(python: str, tmp_path: Path) -> None:
    done = run(python, "-c", USES, folder=tmp_path)

    # Without OpenTelemetry a host goes on and logs what is missing.
    needed = [extra for extra in MODULES if extra != "otel"]
    said = [f'{extra} usage.missing_extra Install them: pip install "weft[{extra}]"' for extra in needed]
    assert done.stdout.splitlines() == said, done.stderr


@pytest.mark.proof
def test_a_request_without_the_client_fails_its_run_with_the_command(python: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("""
import weft
app = weft.App()
graph = app.graph({"name": "g", "nodes": {"a": {"http": {"url": "http://localhost:1/"}}}})
try:
    app.run(graph, {})
except weft.RunFailed as failed:
    print(failed.failure.code, failed.failure.attempts, failed)
""")
    done = run(python, "app.py", folder=tmp_path)

    assert done.stdout.startswith("usage.missing_extra 1 "), done.stderr
    assert 'pip install "weft[http]"' in done.stdout


def test_only_the_modules_behind_an_extra_need_it(python: str, tmp_path: Path) -> None:
    walk = """
import importlib, pkgutil, weft
for module in pkgutil.walk_packages(weft.__path__, "weft.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        print(module.name, error.name)
    except weft.MissingExtra:
        print(module.name, "require")
"""
    done = run(python, "-c", walk, folder=tmp_path)

    missing = dict(line.split() for line in done.stdout.splitlines())
    assert missing.pop("weft.testing.plugin") == "pytest"
    refusing = {name for name, why in missing.items() if why == "require"}
    assert refusing == {"weft.ext.langchain", "weft.ext.openai_agents", "weft.ext.pydantic_ai"}
    missing = {name: why for name, why in missing.items() if name not in refusing}
    assert set(missing) == {name for names in NEED_AN_EXTRA.values() for name in names.split()}
    for extra, names in NEED_AN_EXTRA.items():
        assert {missing[name] for name in names.split()} <= set(MODULES[extra])


def test_every_extra_has_its_modules_and_is_installed_for_the_tests() -> None:
    assert set(PROJECT["project"]["optional-dependencies"]) == set(MODULES)
    (own,) = [
        text for text in PROJECT["dependency-groups"]["dev"] if isinstance(text, str) and text.startswith("weft[")
    ]
    assert Requirement(own).extras | {"http"} == set(MODULES)
