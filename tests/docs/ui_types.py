"""The types of the API for the web UI, from the server's own description."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import msgspec

from ui import build
from weft.server.openapi import openapi_document
from weft.server.route_table import ROUTES

TYPES = build.UI / "src/api/schema.d.ts"
OPTIONS = (
    "--root-types",
    "--root-types-no-schema-prefix",
    "--default-non-nullable",
    "false",
    "--empty-objects-unknown",
)


def ui_types() -> str:
    """Return the text of ``schema.d.ts``, written by the pinned openapi-typescript."""
    with tempfile.TemporaryDirectory() as folder:
        document, types = Path(folder, "openapi.json"), Path(folder, "schema.d.ts")
        document.write_bytes(msgspec.json.encode(openapi_document(ROUTES)))
        script = build.MODULES / "openapi-typescript/bin/cli.js"
        command = [build.install(), str(script), str(document), "-o", str(types), *OPTIONS]
        subprocess.run(command, cwd=build.UI, check=True, stdout=subprocess.DEVNULL)
        return types.read_text("utf-8")
