"""The steps of the image, taken from the Dockerfile and executed here: what they build serves, and is healthy."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.files import ROOT, healthcheck, instructions, served
from tests.servers import free_port

APP = """
import weft

app = weft.App()

@app.workflow
async def greet(ctx: weft.Context, name: str) -> str:
    return f"hello {name}"
"""


def uv() -> str:
    """The uv that made the environment of these tests."""
    found = shutil.which("uv") or str(ROOT / "build" / "uv" / "bin" / "uv")
    if not Path(found).exists():
        pytest.skip("uv is not here")
    return found


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the build stage has run. Its /opt/weft is what the image has."""
    root = tmp_path_factory.mktemp("image")
    source = root / "src"
    for one in instructions("build", "COPY"):
        for name in one.text.split()[:-1]:
            _copy(ROOT / name, source / name)
    environment = {**os.environ, "PATH": f"{Path(uv()).parent}:{os.environ['PATH']}", "WEFT_SKIP_UI": "1"}
    environment |= {"UV_PYTHON": sys.executable, "UV_COMPILE_BYTECODE": "0"}
    environment.pop("VIRTUAL_ENV", None)
    steps = [one.text for one in instructions("build", "RUN")]
    assert steps[0].startswith("pip install"), "which brings uv, and is done here already"
    for step in steps[1:]:
        line = re.sub(r"(?<![\w.])/(opt|tmp)/", rf"{root}/\1/", step)
        done = subprocess.run(
            line, shell=True, cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    return root / "opt" / "weft"


def _copy(there: Path, here: Path) -> None:
    here.parent.mkdir(parents=True, exist_ok=True)
    if there.is_dir():
        ignored = shutil.ignore_patterns("node_modules", "static", "__pycache__")
        shutil.copytree(there, here, ignore=ignored)
    else:
        shutil.copy(there, here)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def checked(image: Path, port: int) -> int:
    """The exit code of the health check, asked at this port."""
    words = [word.replace("8420", str(port)) for word in healthcheck()]
    return subprocess.run([image / "bin" / words[0], *words[1:]], capture_output=True, check=False).returncode


@pytest.fixture
def port(image: Path, folder: Path) -> Iterator[int]:
    """The port of a server that runs as the image starts it, on this machine alone."""
    found = free_port()
    words = [word.replace("0.0.0.0", "127.0.0.1").replace("8420", str(found)) for word in served()["image"]]
    environment = {**os.environ, "WEFT_URL": f"sqlite:///{folder}/weft.db"}
    command = [image / "bin" / "weft", *words]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        said = running.stderr.readline()
        try:
            assert "serving http://127.0.0.1:" in said, said + running.stderr.read()
            yield found
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=120)
            assert running.returncode == 0
        finally:
            running.kill()


@pytest.mark.proof
def test_the_image_serves_and_its_health_check_passes_until_it_stops(image: Path, port: int) -> None:
    assert checked(image, port) == 0
    assert checked(image, free_port()) != 0, "nobody answers there"


@pytest.mark.proof
def test_the_image_has_the_files_for_monitoring_and_no_tests(image: Path) -> None:
    printed = subprocess.run(
        [image / "bin" / "weft", *shlex.split("monitoring alerts")], capture_output=True, text=True, check=True
    )
    (package,) = image.glob("lib/python*/site-packages/weft")

    assert "alert: WeftRunStalled" in printed.stdout
    assert not (package.parent / "tests").exists()
    assert not (package.parent / "pytest").exists()
    assert (image / "bin" / "pip").exists(), "for what the app needs"


@pytest.mark.proof
def test_the_image_refuses_to_listen_everywhere_without_keys(image: Path, folder: Path) -> None:
    environment = {**os.environ, "WEFT_URL": f"sqlite:///{folder}/weft.db"}
    words = [word.replace("8420", str(free_port())) for word in served()["image"]]

    done = subprocess.run(
        [image / "bin" / "weft", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "weft keys create NAME --scope admin" in done.stderr
