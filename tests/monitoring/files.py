"""The files for monitoring, as data, and the metrics that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from weft.cli.monitoring import read_monitoring

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "docs" / "runbooks"
NAME = re.compile(r"\bweft_[a-z0-9_]+")


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    return [rule for group in yaml.safe_load(read_monitoring("alerts.yaml"))["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_monitoring("dashboard.json"))
    return found


def expressions() -> Iterator[str]:
    """Every expression of an alert, a panel or an annotation."""
    yield from (rule["expr"] for rule in rules())
    board = dashboard()
    yield from (target["expr"] for panel in board["panels"] for target in panel["targets"])
    yield from (one["expr"] for one in board["annotations"]["list"])
    yield from (one["query"] for one in board["templating"]["list"])


def named_metrics() -> set[str]:
    return {name for text in expressions() for name in NAME.findall(text)}


def metrics(text: str) -> dict[str, float]:
    """The samples of an exposition, by name and labels as they are written there."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
