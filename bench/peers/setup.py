"""``python -m bench.peers.setup``: install each peer in an environment of its own under ``build/bench-peers``.

Versions are pinned, so that figures of different days compare. What is installed already stays. A peer that cannot be
installed is reported and left out; the benchmarks run with those that are there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.measure import ROOT
from bench.systems import PEERS

REQUIREMENTS = {
    "dbos": ("dbos==3.3.0", "pysqlite3-binary==0.5.4.post2"),
    "langgraph": (
        "langgraph==1.2.20",
        "langgraph-checkpoint-sqlite==3.1.2",
        "langgraph-checkpoint-postgres==3.2.0",
        "psycopg[binary,pool]==3.3.8",
    ),
    "restate": ("restate-sdk==1.2.0", "hypercorn==0.18.0", "aiohttp==3.14.5"),
}
RESTATE_SERVER = "@restatedev/restate-server@1.7.12"


def install_python(peer: str) -> None:
    """Make the environment of one peer; the file written last says for which versions it is complete."""
    place, wanted = PEERS / peer, "\n".join(REQUIREMENTS[peer])
    complete = place / "installed.txt"
    if complete.exists() and complete.read_text() == wanted:
        return
    shutil.rmtree(place, ignore_errors=True)
    _run([_uv(), "venv", "--quiet", "--python", sys.executable, str(place)], PEERS)
    python = str(place / "bin" / "python")
    _run([_uv(), "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *REQUIREMENTS[peer]], PEERS)
    complete.write_text(wanted)


def install_restate_server() -> None:
    """Fetch the server's binary as an npm package. Its scripts are not run: it needs none."""
    place = PEERS / "restate-server"
    complete = place / "installed.txt"
    if complete.exists() and complete.read_text() == RESTATE_SERVER:
        return
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm is needed for the Restate server")
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"private": true}\n')
    _run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", RESTATE_SERVER], place)
    complete.write_text(RESTATE_SERVER)


def _uv() -> str:
    """The uv that made the project's own environment: on the PATH, or where ``make setup`` put it."""
    found = shutil.which("uv", path=f"{os.environ.get('PATH', '')}{os.pathsep}{ROOT / 'build' / 'uv' / 'bin'}")
    if found is None:
        raise RuntimeError("uv is needed: make setup")
    return found


def _run(command: list[str], place: Path) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1500:])


def main() -> None:
    PEERS.mkdir(parents=True, exist_ok=True)
    failed = False
    for peer in REQUIREMENTS:
        try:
            if peer == "restate":
                install_restate_server()
            install_python(peer)
        except (RuntimeError, OSError, subprocess.SubprocessError) as reason:
            failed = True
            # An environment that is half there would be taken for a whole one.
            shutil.rmtree(PEERS / peer, ignore_errors=True)
            print(f"{peer}: not installed: {reason}", file=sys.stderr)
        else:
            print(f"{peer}: ready")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
