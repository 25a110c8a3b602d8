"""The policy of an installation, through its server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.agents.policy.policy_rules import PolicyRules
from weft.agents.policy.verdicts import Asked, PolicyVerdict
from weft.authoring.remote import PAGE, Remote
from weft.core.ids import Millis
from weft.runtime.policy_admin import PolicyVersion
from weft.server.endpoints.policy import PolicyHistory, PolicyView


class RemotePolicy:
    """Shows, sets and tests the policy of a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def show(self, version: int | None = None) -> PolicyVersion:
        """Return a version of the policy, or the newest. Raises NotFound."""
        asked = [("version", str(version))] if version is not None else []
        return _policy_of_view(await self._remote.get_view("policy", PolicyView, asked))

    async def history(self) -> Sequence[PolicyVersion]:
        """Return the newest versions."""
        page = await self._remote.get_view("policy/versions", PolicyHistory, [("limit", str(PAGE))])
        return [_policy_of_view(view) for view in page.versions]

    async def set(self, text: str, *, by: str, reason: str, file: str) -> PolicyVersion:
        """Make a text the policy. Raises BadPolicy, Refused."""
        body = {"text": text, "by": by, "reason": reason}
        return _policy_of_view(await self._remote.post("policy", body, PolicyView, method="PUT"))

    async def test(self, asked: Asked, own: PolicyRules | None = None) -> PolicyVerdict:
        """Say what the policy of the server says about this."""
        body: dict[str, Any] = msgspec.to_builtins(asked)
        for name in ("spent", "agents"):
            body.pop(name)
        return await self._remote.post("policy/test", body, PolicyVerdict)


def _policy_of_view(view: PolicyView) -> PolicyVersion:
    at = Millis(int(view.at.timestamp() * 1000)) if view.at is not None else Millis(0)
    fields = {name: getattr(view, name) for name in ("version", "text", "rules", "program", "by", "reason")}
    return PolicyVersion(at=at, **fields)
