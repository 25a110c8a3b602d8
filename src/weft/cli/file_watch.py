"""Notice that source files were saved, by looking at their times. Needs nothing from the operating system."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

SUFFIXES: Final = frozenset({".py", ".yaml", ".yml"})
SKIPPED: Final = frozenset({"__pycache__", "node_modules"})
FILES_MAX: Final = 5_000
"""More files than this are not watched: looking at them would take too long."""


class FileWatch:
    """The source files in some folders and below, as they were when they were last looked at."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self._seen = self._look()

    def changed(self) -> list[Path]:
        """Return the files that were saved, added or removed since the last look."""
        before, self._seen = self._seen, self._look()
        return sorted(path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path))

    def _look(self) -> dict[Path, int]:
        seen: dict[Path, int] = {}
        for path in self._files():
            try:
                seen[path] = path.stat().st_mtime_ns
            except OSError:
                continue  # removed meanwhile
            if len(seen) == FILES_MAX:
                break
        return seen

    def _files(self) -> Iterator[Path]:
        for root in self.folders:
            for folder, folders, names in os.walk(root):
                folders[:] = [name for name in folders if not _is_skipped(Path(folder, name))]
                yield from (Path(folder, name) for name in names if Path(name).suffix in SUFFIXES)


def _is_skipped(folder: Path) -> bool:
    """Return whether a folder holds no sources of the user: hidden ones, caches, environments."""
    return folder.name.startswith(".") or folder.name in SKIPPED or (folder / "pyvenv.cfg").exists()
