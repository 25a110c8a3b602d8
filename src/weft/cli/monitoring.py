"""Print the files for monitoring that come with Weft: alerts for Prometheus, and a dashboard for Grafana."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from weft.errors import UsageError

FILES: Final = {"alerts": "alerts.yaml", "dashboard": "dashboard.json"}
"""The files, by the word that names each."""


def monitoring(
    file: Annotated[str, typer.Argument(metavar="alerts|dashboard", help="Prometheus rules, or Grafana's dashboard.")],
) -> None:
    """Print the alerts for Prometheus, or the dashboard for Grafana; docs/runbooks has a page for each alert."""
    name = FILES.get(file)
    if name is None:
        raise UsageError(f"There is no file {file!r} for monitoring.", hint="weft monitoring alerts, or: dashboard")
    print(read_monitoring(name), end="")


def read_monitoring(name: str) -> str:
    """Return the text of a file for monitoring."""
    from importlib.resources import files

    return files("weft.observe").joinpath("monitoring", name).read_text("utf-8")
