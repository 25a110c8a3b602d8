"""Check the sources of the web UI: types, style and the tests of pure parts, side by side. ``make check`` runs it."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import build

CHECKS: Final = {
    "types": ("typescript/bin/tsc", "--noEmit", "--incremental", "--tsBuildInfoFile", "../build/ui-types"),
    "style": ("eslint/bin/eslint.js", "src", "--cache", "--cache-location=../build/ui-style"),
    "tests": ("vitest/vitest.mjs", "run", "--reporter=dot"),
}


def check() -> bool:
    """Run all checks and print what they find. Returns whether all of them passed."""
    node = build.install()
    begun = {
        name: subprocess.Popen(
            [node, str(build.MODULES / script), *options],
            cwd=build.UI,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, (script, *options) in CHECKS.items()
    }
    is_good = True
    for name, process in begun.items():
        said, _ = process.communicate()
        is_good = is_good and process.returncode == 0
        print(f"ui {name}: {'passed' if process.returncode == 0 else 'FAILED'}")
        if process.returncode:
            print(said)
    return is_good


if __name__ == "__main__":
    sys.exit(0 if check() else 1)
