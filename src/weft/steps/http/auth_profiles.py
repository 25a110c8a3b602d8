"""Credentials for requests of agents: ``[tool.weft.auth.NAME]`` in ``pyproject.toml``. Models see only the name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from weft.agents.policy.globs import is_host_match
from weft.core.findings import did_you_mean
from weft.errors import BadValue, NotAllowed, UsageError
from weft.settings import PROJECT_FILE, project_table
from weft.steps.secrets import Secret

SECTION = "auth"
_HINT = (
    '[tool.weft.auth.weather] secret = "env:WEATHER_KEY", in = "header", name = "x-api-key", '
    'hosts = ["api.weather.example"]'
)


class AuthProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret goes in a request, and to which hosts."""

    secret: str
    hosts: list[str]
    place: Literal["header", "query", "bearer"] = msgspec.field(default="header", name="in")
    name: str = ""
    """The header or the parameter of the query; ``bearer`` needs none."""

    def check_host(self, profile: str, url: str) -> None:
        """Raise NotAllowed if the secret may not go to the host of this address."""
        parts = urlsplit(url)
        host = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        if not any(is_host_match(pattern, host) for pattern in self.hosts):
            raise NotAllowed(
                f"The auth profile {profile} is not for {host}.",
                hint=f"It is for {', '.join(self.hosts)}.",
                code="tool.wrong_host",
            )

    def credentials(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the headers and the query that carry the secret. Raises NotFound, NotAllowed."""
        value = Secret(self.secret).reveal().strip()
        if self.place == "bearer":
            return {"authorization": f"Bearer {value}"}, {}
        return ({self.name.lower(): value}, {}) if self.place == "header" else ({}, {self.name: value})


def project_auth_profile(name: str, path: Path = PROJECT_FILE) -> AuthProfile:
    """Return the profile with this name. Raises BadValue if there is none, UsageError if it cannot be read."""
    table = project_table(path).get(SECTION, {})
    if not isinstance(table, dict):
        raise UsageError("[tool.weft] auth is not a table.", hint=_HINT)
    if name not in table:
        near = did_you_mean(name, list(table))
        known = ", ".join(sorted(table)) or "none"
        raise BadValue(f'There is no auth profile "{name[:60]}". {near}'.strip(), hint=f"There are: {known}.")
    return read_profile(name, table[name])


def read_profile(name: str, given: Any) -> AuthProfile:
    """Read one profile. Raises UsageError."""
    try:
        profile = msgspec.convert(given, AuthProfile)
        Secret(profile.secret)
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"[tool.weft.auth.{name}] cannot be read: {error}.", hint=_HINT) from None
    if profile.place != "bearer" and not profile.name:
        raise UsageError(f"[tool.weft.auth.{name}] has no name for the {profile.place}.", hint=_HINT)
    return profile
