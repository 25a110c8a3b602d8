"""Programs that tests run and that are no Python packages: one on the PATH, else one from a package of Debian.

A package is fetched with `apt-get download` and unpacked into the user's cache, once per machine. Nothing is installed,
and nothing needs root. Where there is neither the program nor Debian, the test is skipped with the reason.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest


class Package(NamedTuple):
    """A program, the package that has it, and where it is in there."""

    program: str
    package: str
    path: str


PROMTOOL = Package("promtool", "prometheus", "usr/bin/promtool")
NGINX = Package("nginx", "nginx", "usr/sbin/nginx")
CADDY = Package("caddy", "caddy", "usr/bin/caddy")


class NoProgram(Exception):
    """The program is not here and could not be fetched."""


def find(wanted: Package) -> Path:
    """Return the program, or skip the test."""
    try:
        return _find(wanted)
    except NoProgram as missing:
        pytest.skip(str(missing))


def _find(wanted: Package) -> Path:
    found = shutil.which(wanted.program)
    if found:
        return Path(found)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft-tests"
    folder = cache / f"debian-{wanted.package}"
    if not (folder / wanted.path).exists():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / ".lock").open("w") as lock:  # other processes of the test run want it too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / wanted.path).exists():
                _fetch(wanted, folder)
    return folder / wanted.path


def _fetch(wanted: Package, folder: Path) -> None:
    """Unpack the package beside the folder and rename, so that a folder is whole or absent."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoProgram(f"{wanted.program} is not here, and this is no Debian to fetch it from")
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        asked = ["apt-get", "download", "-qq", wanted.package]
        done = subprocess.run(asked, cwd=place, capture_output=True, text=True, check=False)
        packages = list(Path(place).glob("*.deb"))
        if done.returncode != 0 or not packages:
            raise NoProgram(f"{wanted.program} is not here, and {wanted.package} could not be fetched: {done.stderr}")
        made = Path(place) / "unpacked"
        subprocess.run(["dpkg-deb", "-x", packages[0], made], check=True)
        made.rename(folder)
