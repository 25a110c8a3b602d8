"""A notebook: a real IPython shell that runs cells."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in open(sys.argv[1]).read().split("# cell\\n"):
    done = shell.run_cell(cell)
    if not done.success:
        sys.exit(1)
"""


def run_cells(folder: Path, *cells: str) -> subprocess.CompletedProcess[str]:
    """Run cells one after the other in a shell of IPython, in a process of its own."""
    (folder / "cells.py").write_text("# cell\n".join(textwrap.dedent(cell) for cell in cells))
    return subprocess.run(
        [sys.executable, "-c", SHELL, "cells.py"],
        cwd=folder,
        env={"HOME": str(folder), "WEFT_URL": "sqlite:///weft.db", "PATH": "", "IPYTHONDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
