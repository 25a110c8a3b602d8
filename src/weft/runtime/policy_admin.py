"""Show the policy of an installation, set a new version, and try what it says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.agents.policy.defaults import default_for
from weft.agents.policy.load import parse_policy
from weft.agents.policy.policy_rules import PolicyRules
from weft.agents.policy.verdicts import Asked, PolicyVerdict
from weft.core.ids import Millis
from weft.errors import BadPolicy, NotFound, Refused
from weft.ports.policies import StoredPolicy
from weft.runtime.service import RunService

BYTES_MAX = 256 * 1024
HISTORY_MAX = 100


class PolicyVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the policy in the store."""

    version: int
    """0 if there is none."""
    text: str = ""
    """The document as it was set."""
    rules: list[str] = []
    program: list[str] = []
    """The rules that the program of the server brings along."""
    by: str = ""
    at: Millis = Millis(0)
    reason: str = ""


class PolicyAdmin:
    """The policy of the store that a service uses."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._policies = service.store.policies

    async def show(self, version: int | None = None) -> PolicyVersion:
        """Return a version of the policy, or the newest. Raises NotFound if there is no such version."""
        number = await self._policies.newest() if version is None else version
        found = await self._policies.get(number) if number else None
        if found is None and version is not None:
            raise NotFound(
                f"There is no version {version} of the policy.",
                hint="weft policy show --history lists all versions.",
                code="policy.not_found",
            )
        return _policy_version(found) if found is not None else PolicyVersion(version=0)

    async def history(self, upto: int | None = None, limit: int = HISTORY_MAX) -> Sequence[PolicyVersion]:
        """Return versions of the policy, newest first."""
        return [_policy_version(found) for found in await self._policies.history(upto=upto, limit=limit)]

    async def set(self, text: str, *, by: str = "", reason: str = "", file: str = "policy") -> PolicyVersion:
        """Make a text the policy. The same text as before changes nothing.

        Raises BadPolicy if it cannot be read, Refused if somebody else set the policy meanwhile.
        """
        if len(text.encode()) > BYTES_MAX:
            raise BadPolicy(
                f"The policy has {len(text.encode()):,} bytes; the limit is {BYTES_MAX:,}.",
                hint="Use wildcards: names: [crm_*].",
                code="policy.too_big",
            )
        parse_policy(text, file)
        newest = await self._policies.newest()
        before = await self._policies.get(newest) if newest else None
        if before is not None and before.text == text:
            return _policy_version(before)
        now = Millis(self._service.clock.now_ms())
        new = StoredPolicy(version=newest + 1, text=text, by=by, at=now, reason=reason)
        if not await self._policies.put(new):
            raise Refused(
                f"Somebody else set version {newest + 1} of the policy meanwhile.",
                hint="Look at it with weft policy show, and set yours again.",
                code="policy.changed",
            )
        await self._service.policy.refresh()
        return _policy_version(new)

    async def test(self, asked: Asked, own: PolicyRules | None = None) -> PolicyVerdict:
        """Say what the policy says about this. ``own`` is the policy of a program that is not hosted here."""
        policy = self._service.policy
        await policy.refresh()
        default = default_for(asked.action, agent=asked.agent)
        verdict = policy.verdict(asked, default)
        if own is None:
            return verdict
        also = own.verdict(asked, default)
        # A verdict without a rule is the default, which any rule replaces.
        ranked = sorted((verdict, also), key=lambda one: (not one.rule, _RANKS.index(one.permission)))
        return ranked[0]


_RANKS = ("deny", "ask", "allow")


def _policy_version(stored: StoredPolicy) -> PolicyVersion:
    try:
        read = parse_policy(stored.text).policy
        rules = [str(rule) for rule in (*read.rules, *read.limits)]
    except BadPolicy as error:
        rules = [f"cannot be read: {error.message}"]
    return PolicyVersion(
        version=stored.version, text=stored.text, rules=rules, by=stored.by, at=stored.at, reason=stored.reason
    )
