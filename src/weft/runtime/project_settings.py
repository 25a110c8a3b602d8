"""The settings of a host in this project: as the app gives them, and as ``pyproject.toml`` and the environment say."""

from __future__ import annotations

from typing import Any

from weft.runtime.log_limits import project_log_limits
from weft.runtime.patch_limits import project_patch_limits
from weft.runtime.retention_policy import RETENTION_SECONDS, project_retention_policy
from weft.runtime.settings import Settings
from weft.runtime.tool_settings import project_tool_settings


def project_settings(**given: Any) -> Settings:
    """Return the settings of a host in the current folder. Raises UsageError."""
    return Settings(
        retention=project_retention_policy(),
        retention_seconds=RETENTION_SECONDS,
        patch_limits=project_patch_limits(),
        step_logs=project_log_limits(),
        tools=project_tool_settings(),
        **given,
    )
